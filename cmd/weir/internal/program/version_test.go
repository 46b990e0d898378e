package program

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestVersionNamesTheCommit(t *testing.T) {
	built := runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
	stamp := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-11-23T15:19:34Z"}, {Key: "vcs.modified", Value: modified}}
	}
	for name, c := range map[string]struct {
		version  string
		settings []debug.BuildSetting
		want     string
	}{
		"go build in a clone":           {"v0.1.1-0.20261123151934-0123456789ab", stamp("false"), "weir v0.1.1-0.20261123151934-0123456789ab " + built + "commit 0123456789abcdef of 2026-11-23T15:19:34Z\n"},
		"go build after a change":       {"v0.1.0+dirty", stamp("true"), "weir v0.1.0+dirty " + built + "commit 0123456789abcdef of 2026-11-23T15:19:34Z, modified\n"},
		"go install module@version":     {"v0.1.0", nil, "weir v0.1.0 " + built},
		"go build -buildvcs=false":      {"(devel)", nil, "weir devel " + built + "commit unknown\n"},
		"a build without a description": {"", nil, "weir devel " + built + "commit unknown\n"},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Version: c.version}, Settings: c.settings}
		if got := versionText(info); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
