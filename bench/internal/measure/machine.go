package measure

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Machine describes the machine and the run, in lines.
func Machine(command string) []string {
	return []string{
		fmt.Sprintf("%s, %d cores, %s/%s", processor(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH),
		"Redis: " + output("redis-server", "--version"),
		"Go: " + runtime.Version() + "; " + strings.Join(modules(), ", "),
		"commit " + Commit() + ", " + time.Now().UTC().Format("2006-01-02 15:04 UTC"),
		"command: `" + strings.TrimSpace(command) + "`",
	}
}

func processor() string {
	content, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "processor unknown"
	}
	for line := range strings.Lines(string(content)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "processor unknown"
}

func output(name string, args ...string) string {
	text, err := exec.Command(name, args...).Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

// Commit returns the commit, and notes uncommitted changes.
func Commit() string {
	hash := output("git", "rev-parse", "--short=12", "HEAD")
	if err := exec.Command("git", "diff", "--quiet", "HEAD").Run(); err != nil {
		hash += " with uncommitted changes"
	}
	return hash
}

// compared are the modules that a report names, by parts of their paths.
var compared = []string{"redis", "rueidis", "throttled", "ulule", "tollbooth", "httprate", "go-limiter", "ratelimit", "x/time", "failsafe", "slidingwindow", "google.golang.org/grpc"}

// modules returns the versions of the compared modules.
func modules() (list []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return []string{"modules unknown"}
	}
	for _, m := range info.Deps {
		if !strings.Contains(m.Path, "weir") && slices.ContainsFunc(compared, func(part string) bool { return strings.Contains(m.Path, part) }) {
			list = append(list, m.Path+" "+m.Version)
		}
	}
	return list
}
