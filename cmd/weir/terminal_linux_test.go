package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/weirflow/weir/cmd/weir/internal/program"
)

// onTerminal runs the program on a terminal and returns what that shows.
func onTerminal(t *testing.T, columns int, args ...string) string {
	t.Helper()
	return withTerminal(t, columns, func(terminal *os.File) {
		var errs strings.Builder
		if code := program.Run(args, strings.NewReader(""), terminal, &errs); code != 0 {
			t.Errorf("weir %q: exit %d, %s", args, code, errs.String())
		}
	})
}

// withTerminal calls f with a terminal and returns what f has shown.
func withTerminal(t *testing.T, columns int, f func(terminal *os.File)) string {
	t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	var number, unlocked int32
	size := [4]uint16{24, uint16(columns)}
	for request, value := range map[uintptr]unsafe.Pointer{
		syscall.TIOCGPTN: unsafe.Pointer(&number), syscall.TIOCSPTLCK: unsafe.Pointer(&unlocked), syscall.TIOCSWINSZ: unsafe.Pointer(&size),
	} {
		if _, _, failed := syscall.Syscall(syscall.SYS_IOCTL, control.Fd(), request, uintptr(value)); failed != 0 {
			t.Fatal(failed)
		}
	}
	terminal, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	shown := make(chan string)
	go func() {
		all, _ := io.ReadAll(control) // the error says that the terminal is closed
		shown <- strings.ReplaceAll(string(all), "\r\n", "\n")
	}()
	f(terminal)
	_ = terminal.Close()
	return <-shown
}

// A log of one instant, one that spans all years with a key of control characters, and the log of the tutorial.
func terminalLogs(t *testing.T) (instant, span, tutorial string) {
	t.Helper()
	tutorial, err := filepath.Abs("../../simulate/testdata/access.log.gz")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	instant, span = "instant.log", "span.log"
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	line := func(at, key string) string { return `{"time":"` + at + `","ip":"10.0.0.1","who":"` + key + `"}` + "\n" }
	write(instant, strings.Repeat(line("2000-10-10T13:55:36Z", "a"), 3))
	last := line("2261-12-31T00:00:00Z", `\u001b[31mred\u0007\r\n`)
	write(span, line("1678-01-02T00:00:00Z", "a")+last+last)
	return instant, span, tutorial
}

var paint = regexp.MustCompile("\x1b\\[(31|32|0)m")

func TestNothingIsWiderThanTheTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	instant, span, tutorial := terminalLogs(t)
	commands := [][]string{
		{"replay", "--limit", "1/s", instant},
		{"replay", "--limit", "fixed window 1/1d and token bucket 1/s burst 10", "--limit", "leaky bucket 1/s queue 9", "--top", "3", "--key", "who", span},
		{"replay", "--suggest", "refuse 1%", "--key", "who", span},
		{"simulate"},
		{"simulate", "--traffic", "constant 1/s", "--limit", "1/s", "--for", "1ns"},
		{"simulate", "--traffic", "log " + span, "--key", "who", "--per-client", "--limit", "1/s"},
		{"simulate", "--traffic", "poisson 50/s from 9 clients cost 1 to 3 retry every 1s", "--server", "60/s", "--limit", "token bucket 10/s burst 20 and fixed window 1000/1d"},
		{"check", "token bucket 5/s burst 10 and fixed window 1000/1d", "--plot", "terminal"},
	}
	widths, narrow := []int{40, 41, 79, 80, 81, 200}, []int{1, 39, 500}
	if testing.Short() {
		widths, narrow = []int{41, 80}, []int{1}
	}
	for _, args := range commands {
		for _, columns := range widths {
			checkWidth(t, columns, onTerminal(t, columns, args...))
		}
		for _, columns := range narrow { // no panic
			onTerminal(t, columns, args...)
		}
	}
	checkWidth(t, 80, onTerminal(t, 80, "replay", "--limit", "token bucket 2/s burst 6", "--limit", "sliding window 60/1m", tutorial))
}

func checkWidth(t *testing.T, columns int, text string) {
	t.Helper()
	for line := range strings.Lines(paint.ReplaceAllString(text, "")) {
		line = strings.TrimSuffix(line, "\n")
		if n := utf8.RuneCountInString(line); n > columns || strings.ContainsAny(line, "\x1b\a\r") {
			t.Fatalf("%d columns on a terminal of %d: %q, in\n%s", n, columns, line, text)
		}
	}
}

func TestASuggestionIsOneChartAndThenItsTable(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	_, _, tutorial := terminalLogs(t)
	text := paint.ReplaceAllString(onTerminal(t, 80, "replay", "--suggest", "refuse 0.1% of requests", tutorial), "")
	order := -1
	for _, part := range []string{"refused requests, %", "● suggested", "\ntarget: refuse", "\nlimit ", "token bucket 1/s burst 39", "(not shown in 80 columns: share, of clients, worst, its refusals, peak)"} {
		if strings.Count(text, part) != 1 || strings.Index(text, part) < order {
			t.Fatalf("%q is not there once, in order:\n%s", part, text)
		}
		order = strings.Index(text, part)
	}
}

func TestOnlyATerminalThatWantsColoursGetsThem(t *testing.T) {
	instant, _, _ := terminalLogs(t)
	args := []string{"replay", "--limit", "1/s", "--plot", "terminal", instant}
	for _, test := range []struct {
		terminal, no string
		want         bool
	}{{"xterm", "", true}, {"xterm", "1", false}, {"dumb", "", false}, {"", "", false}} {
		t.Setenv("TERM", test.terminal)
		t.Setenv("NO_COLOR", test.no)
		text := onTerminal(t, 80, args...)
		if got := strings.Contains(text, "\x1b"); got != test.want {
			t.Errorf("TERM=%s NO_COLOR=%s: colours %v, want %v:\n%q", test.terminal, test.no, got, test.want, text)
		}
		for _, painted := range []string{"\x1b[32m1\x1b[0m", "\x1b[31m2\x1b[0m", "\x1b[32m█", "\x1b[31m░"} {
			if test.want && !strings.Contains(text, painted) {
				t.Errorf("no %q in %q", painted, text)
			}
		}
	}
	t.Setenv("TERM", "xterm")
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if code := program.Run(args, strings.NewReader(""), file, io.Discard); code != 0 {
		t.Fatalf("exit %d", code)
	}
	if text, err := os.ReadFile(file.Name()); err != nil || strings.Contains(string(text), "\x1b") || !strings.Contains(string(text), "░") {
		t.Errorf("a file gets %q, %v, want a picture without colours", text, err)
	}
}
