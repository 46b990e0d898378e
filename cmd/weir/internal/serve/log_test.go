package serve

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestLogThatIsNotReadBlocksNoWriterAndReportsDroppedLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read, write := io.Pipe() // without a buffer: every write waits for a reader
		buffer := newLog(write, &logOptions{})
		log := slog.New(slog.NewTextHandler(buffer, nil))
		log.Info("first")
		synctest.Wait() // the write has begun, and stalls
		for range 10 * maxUnwrittenLines {
			log.Info("next")
		}
		lines := bufio.NewScanner(read)
		kept := 0
		for lines.Scan() && !strings.Contains(lines.Text(), "dropped") {
			kept++
		}
		if want := 1 + maxUnwrittenLines; kept != want {
			t.Errorf("%d lines were kept for a reader that stalled, want %d", kept, want)
		}
		if got, want := lines.Text(), 9*maxUnwrittenLines; !strings.HasSuffix(got, "lines="+strconv.Itoa(want)) {
			t.Errorf("after the stall the log says %q, want that %d lines were dropped", got, want)
		}
		log.Info("later")
		if lines.Scan(); !strings.Contains(lines.Text(), "msg=later") {
			t.Errorf("after the report the log says %q, want the next line", lines.Text())
		}
		buffer.end(time.Minute)
	})
}

func TestDurationsInTheLogAreReadable(t *testing.T) {
	for _, format := range []string{logText, logJSON} {
		var out strings.Builder
		o := &logOptions{format: format, level: "info"}
		slog.New(o.handler(&out)).WithGroup("engine").With("for", 90*time.Second).Info("away", "since", 1500*time.Millisecond, slog.Group("more", "wait", time.Hour))
		for _, want := range []string{"1m30s", "1.5s", "1h0m0s"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("--log-format %s: %q does not say %s", format, out.String(), want)
			}
		}
	}
}

func TestEndOfLogWritesWhatWaitsButNotForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read, write := io.Pipe()
		buffer := newLog(write, &logOptions{})
		_, _ = buffer.Write([]byte("last\n"))
		start := time.Now()
		buffer.end(time.Second)
		if took := time.Since(start); took != time.Second {
			t.Errorf("the end of a log without a reader took %v, want 1s", took)
		}
		got := make(chan string)
		go func() {
			line, _ := bufio.NewReader(read).ReadString('\n')
			got <- line
		}()
		if line := <-got; line != "last\n" {
			t.Errorf("a late reader gets %q, want the last line", line)
		}
		_ = read.Close()
	})
}

// failing fails its first writes, like a full disk.
type failing struct {
	strings.Builder
	times int
}

func (f *failing) Write(b []byte) (int, error) {
	if f.times > 0 {
		f.times--
		return 0, errors.New("no space left")
	}
	return f.Builder.Write(b)
}

func TestLinesThatCouldNotBeWrittenAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &failing{times: 2} // the lines, and then their report
		buffer := newLog(out, &logOptions{})
		_, _ = buffer.Write([]byte("one\n"))
		synctest.Wait()
		_, _ = buffer.Write([]byte("two\n"))
		buffer.end(time.Second)
		got := out.String()
		if !strings.HasPrefix(got, "two\n") || !strings.HasSuffix(got, "lines=1\n") {
			t.Errorf("the log is %q, want the second line, and that one was dropped", got)
		}
	})
}

// stalledLog returns a full pipe without a reader.
func stalledLog(t *testing.T) *os.File {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = read.Close(), write.Close() })
	if err := write.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = write.Write(make([]byte, 1))
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	return write
}

// The program's own bounds end it long before this bound.
const patience = time.Minute

func TestDaemonWhoseLogStallsAnswersSavesAndStops(t *testing.T) {
	t.Parallel()
	f := &stateFile{path: filepath.Join(t.TempDir(), "state"), log: slog.New(slog.DiscardHandler)}
	cmd := daemonCommand(t, "--http", "127.0.0.1:0", "--rule", slowRule(t).String(), "--state", f.path)
	cmd.Stderr = stalledLog(t)
	url := startAndFindURL(t, cmd)
	if got := postTake(t, url, `{"rule":"r","key":"k","cost":7}`); !strings.HasPrefix(got, `{"allowed":true,`) {
		t.Errorf("take: got %s", got)
	}
	if err := stopDaemon(cmd); err != nil {
		t.Errorf("weir serve ended with %v, want a good end", err)
	}
	if got := spent(t, f); got != 7 {
		t.Errorf("%d spent in the file, want 7", got)
	}
}

func TestDaemonThatFailsEndsThoughItsLogStalls(t *testing.T) {
	t.Parallel()
	cmd := daemonCommand(t, "--http", "127.0.0.1:0", "--state", filepath.Join(t.TempDir(), "nowhere", "state"))
	cmd.Stderr = stalledLog(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := waitForEnd(cmd); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("weir serve without a folder for its state: got %v, want exit code 1", err)
	}
}

// A supervisor often gives both outputs the same pipe.
func TestDaemonWhoseOutputStallsAnswersAndStops(t *testing.T) {
	cmd := daemonCommand(t, "--http", loopback(t))
	cmd.Stdout = stalledLog(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url := "http://" + cmd.Args[3]
	awaitAnswer(t, url+"/healthz")
	if err := stopDaemon(cmd); err != nil {
		t.Errorf("weir serve ended with %v, want a good end", err)
	}
}

// awaitAnswer repeats a request until it gets an answer.
func awaitAnswer(t *testing.T, url string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) { // between two requests
		response, err := http.Get(url)
		if err == nil {
			_ = response.Body.Close()
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("no answer within %v: %v", patience, err)
		}
	}
}

// daemonCommand returns the command of weir serve.
func daemonCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Args = append([]string{"weir", "serve"}, args...)
	return cmd
}

func stopDaemon(cmd *exec.Cmd) error {
	return errors.Join(cmd.Process.Signal(syscall.SIGTERM), waitForEnd(cmd))
}

// waitForEnd waits for a process and kills it if it does not end.
func waitForEnd(cmd *exec.Cmd) error {
	defer time.AfterFunc(patience, func() { _ = cmd.Process.Kill() }).Stop()
	return cmd.Wait()
}
