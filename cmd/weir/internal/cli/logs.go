package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/weirflow/weir/simulate"
)

// LogFields are the fields that every log format can have.
var LogFields = []string{"ip", "method", "path", "query", "uri", "status", "user", "referer", "agent", "host"}

// ReadLog adds the lines of a file, or of standard input, to the traffic.
func ReadLog(command string, traffic *simulate.Traffic, name string, in io.Reader, progress *Progress) error {
	if name == "-" {
		return explainLog(command, traffic.ReadLog("standard input", progress.reading("standard input", in)))
	}
	file, err := os.Open(name)
	if err != nil {
		return explainLog(command, err)
	}
	defer file.Close()
	return explainLog(command, traffic.ReadLog(name, progress.reading(name, file)))
}

// explainLog adds a hint to an error of reading a log.
func explainLog(command string, err error) error {
	if err == nil {
		return nil
	}
	hint := "the log may be damaged or still being written: 'gzip -t FILE' checks a compressed one"
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		hint = "check the path; '-' reads standard input"
	case errors.Is(err, fs.ErrPermission):
		hint = "run it as a user who may read the log, or pipe it in: sudo cat FILE | weir replay --limit LIMIT"
	case errors.As(err, &path):
		hint = "name files, not directories; '-' reads standard input"
	}
	return Fail(errors.New(command+": "+Inner(err)), hint)
}

// Inner returns the message without the prefix of the package.
func Inner(err error) string { return strings.TrimPrefix(err.Error(), "simulate: ") }
