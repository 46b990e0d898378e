package main

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir/bench/internal/report"
)

// machine describes the machine and the run. An unknown value is "unknown".
func machine(command string) report.Machine {
	return report.Machine{
		CPU:       fieldOf("/proc/cpuinfo", "model name"),
		System:    runtime.GOOS + "/" + runtime.GOARCH,
		Go:        runtime.Version(),
		Commit:    commit(),
		Command:   strings.TrimSpace(command),
		Cores:     runtime.NumCPU(),
		MemoryGiB: memoryGiB(),
		Date:      time.Now(),
		Modules:   modules(),
	}
}

// fieldOf returns the value of the first line "name : value" of a file.
func fieldOf(path, name string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(content)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func memoryGiB() float64 {
	number, _, _ := strings.Cut(fieldOf("/proc/meminfo", "MemTotal"), " ")
	kib, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	return kib / (1 << 20)
}

// commit returns the short hash, and notes uncommitted changes.
func commit() string {
	hash, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	text := strings.TrimSpace(string(hash))
	if err := exec.Command("git", "diff", "--quiet", "HEAD").Run(); err != nil {
		text += " with uncommitted changes"
	}
	return text
}

// modules returns the dependencies of this program.
func modules() (list []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return []string{"unknown"}
	}
	for _, m := range info.Deps {
		list = append(list, m.Path+" "+m.Version)
	}
	slices.Sort(list)
	return list
}
