package serve

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// The rights that other users of the machine should not have on a file, by its mode.
const (
	othersRead  = 0o004
	othersWrite = 0o002
)

// guarded is a file that should not give other users of the machine the rights of a mode.
type guarded struct {
	flag, path string
	mode       os.FileMode
	text, mend string
}

// warnOfModes logs which files let other users of the machine pose as a caller or as the daemon.
func (o *portOptions) warnOfModes(log *slog.Logger) {
	warnOfModes(log,
		guarded{"tokens", o.files.Tokens, othersWrite, "every user of this machine can give itself scopes", "chmod o-w"},
		guarded{"tls-client-ca", o.files.ClientCA, othersWrite, "every user of this machine can let callers in", "chmod o-w"},
		guarded{"tls-cert", o.files.Cert, othersWrite, "every user of this machine can change the certificate", "chmod o-w"},
		guarded{"tls-key", o.files.Key, othersRead | othersWrite, "every user of this machine can read or change the key of the daemon", "chmod o-rw"})
}

// warnOfModes logs that the secret of events lets other users of the machine sign them.
func (o *notifyOptions) warnOfModes(log *slog.Logger) {
	warnOfModes(log, guarded{"notify-secret", o.secret, othersRead | othersWrite, "every user of this machine can sign events as the daemon", "chmod o-rw"})
}

// warnOfModes logs which files other users have rights on. The modes of Windows do not tell.
func warnOfModes(log *slog.Logger, files ...guarded) {
	if runtime.GOOS == "windows" {
		return
	}
	for _, f := range files {
		info, err := os.Stat(f.path) // an empty path is none
		if err == nil && !isMounted(f.path) && info.Mode().IsRegular() && info.Mode()&f.mode != 0 {
			log.Warn(f.text, "flag", "--"+f.flag, "file", f.path, "mode", info.Mode().Perm(), "mend", f.mend)
		}
	}
}

// isMounted reports whether a file is that of a mounted volume of Kubernetes, a link to the current version below
// ..data: the volume, which only the pod can read, has one mode for all files.
func isMounted(path string) bool {
	target, err := os.Readlink(path)
	return err == nil && strings.HasPrefix(filepath.ToSlash(target), "..data/")
}
