package rulefiles

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func ruled(limit string) string { return "rules: [{name: r, match: any, limit: " + limit + "}]\n" }

func opened(t testing.TB, paths ...string) *Set {
	t.Helper()
	s, err := Open(Options{}, paths...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func inForce(s *Set) string { return rules.LimitText(s.Config().Rule("r").Limit) }

func TestABadReloadKeepsTheRulesAndSaysSo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "weir.yaml")
	write(t, file, ruled("5/m"))
	s := opened(t, file)
	for _, c := range []struct{ text, want, problem string }{
		{ruled("6/m"), "6/m", ""},
		{ruled("6/x"), "6/m", `unexpected "6/x"`},
		{"", "6/m", "is empty"},
		{ruled("7/m"), "7/m", ""},
	} {
		write(t, file, c.text)
		r := s.Reload()
		if got := inForce(s); got != "token bucket "+c.want {
			t.Errorf("%q: %s is in force, want %s", c.text, got, c.want)
		}
		if (r.Err != nil) != (c.problem != "") || r.Err != nil && !strings.Contains(r.Err.Error(), c.problem) || fmt.Sprint(s.Last().Err) != fmt.Sprint(r.Err) {
			t.Errorf("%q: got %v, last %v, want %q", c.text, r.Err, s.Last().Err, c.problem)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if r := s.Reload(); r.Err == nil || inForce(s) != "token bucket 7/m" {
		t.Errorf("a removed file: got %v, %s in force", r.Err, inForce(s))
	}
	write(t, file, "listen: {http: 127.0.0.1:1}\nengine: redis://a\n"+ruled("7/m"))
	if r := s.Reload(); r.Err != nil || fmt.Sprint(r.Restart) != "[listen engine]" {
		t.Errorf("another address: got %+v", r)
	}
}

func TestFilesOfADirectoryAreOneConfiguration(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "a.yaml"), ruled("5/m"))
	s := opened(t, folder)
	write(t, filepath.Join(folder, "b.yml"), strings.Replace(ruled("6/m"), "name: r", "name: q", 1))
	if r := s.Reload(); r.Err != nil || len(rules.Diff(r.Before, r.Now)) != 1 {
		t.Errorf("a new file: got %+v", r)
	}
	write(t, filepath.Join(folder, "c.yml"), ruled("6/m"))
	if r := s.Reload(); r.Err == nil || !strings.Contains(r.Err.Error(), `has the name "r", too`) {
		t.Errorf("a rule given twice: got %+v", r)
	}
}

// watched starts a watch and returns its reports.
func watched(t *testing.T, s *Set, again chan os.Signal) chan Reload {
	reports := make(chan Reload, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan bool)
	go func() { defer close(ended); s.Watch(ctx, again, func(r Reload) { reports <- r }) }()
	t.Cleanup(func() { cancel(); <-ended })
	return reports
}

// next returns the next report.
func next(t *testing.T, reports chan Reload) Reload {
	t.Helper()
	select {
	case r := <-reports:
		return r
	case <-time.After(20 * time.Second):
		t.Fatal("no report within 20s")
	}
	return Reload{}
}

func TestAWatchedFileIsReloadedHoweverItChanges(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "rules.conf") // any name
	write(t, file, ruled("1/m"))
	s := opened(t, file)
	write(t, file, ruled("2/m")) // before the watch
	again := make(chan os.Signal)
	reports := watched(t, s, again)
	want := func(limit string) {
		t.Helper()
		if r := next(t, reports); r.Err != nil || inForce(s) != "token bucket "+limit {
			t.Errorf("got %v, %s in force, want %s", r.Err, inForce(s), limit)
		}
	}
	want("2/m")
	write(t, file, ruled("3/m"))
	want("3/m")
	write(t, filepath.Join(folder, "new"), ruled("4/m")) // as editors save
	if err := os.Rename(filepath.Join(folder, "new"), file); err != nil {
		t.Fatal(err)
	}
	want("4/m")
	write(t, file, ruled("5/z"))
	if r := next(t, reports); r.Err == nil || inForce(s) != "token bucket 4/m" {
		t.Errorf("a bad file: got %v, %s in force", r.Err, inForce(s))
	}
	write(t, file, ruled("5/m"))
	want("5/m")
	again <- os.Interrupt
	want("5/m")
}

// Kubernetes mounts a ConfigMap as links through ..data, and replaces that link.
func TestALinkThatKubernetesSwapsIsFollowed(t *testing.T) {
	folder := t.TempDir()
	mount := func(version, limit string) {
		if err := os.Mkdir(filepath.Join(folder, version), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, version, "weir.yaml"), ruled(limit))
		if err := os.Symlink(version, filepath.Join(folder, "..tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(folder, "..tmp"), filepath.Join(folder, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	mount("..1", "1/m")
	if err := os.Symlink("..data/weir.yaml", filepath.Join(folder, "weir.yaml")); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"file": filepath.Join(folder, "weir.yaml"), "directory": folder} {
		t.Run(name, func(t *testing.T) {
			s := opened(t, path)
			reports := watched(t, s, nil)
			for i := range 3 {
				limit := fmt.Sprintf("%d/h", i+1)
				mount(fmt.Sprintf("..%s%d", name, i), limit)
				if r := next(t, reports); r.Err != nil || inForce(s) != "token bucket "+limit {
					t.Errorf("got %v, %s in force, want %s", r.Err, inForce(s), limit)
				}
			}
		})
	}
}

// A link may stand anywhere on the way to a file, and may lead out of the directory.
func TestLinksOnTheWayAreFollowed(t *testing.T) {
	folder := t.TempDir()
	in := func(names ...string) string { return filepath.Join(append([]string{folder}, names...)...) }
	link := func(to string, names ...string) {
		t.Helper()
		if err := os.Symlink(to, in("new")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(in("new"), in(names...)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"releases/1", "releases/2", "rules", "elsewhere"} {
		if err := os.MkdirAll(in(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, in("releases/1/weir.yaml"), ruled("1/h"))
	write(t, in("releases/2/weir.yaml"), ruled("2/h"))
	write(t, in("elsewhere/rules"), ruled("1/h"))
	link("releases/1", "current")
	link("current/weir.yaml", "chain")
	link("../elsewhere/rules", "rules", "weir.yaml")
	for i, c := range []struct {
		name, path, file string
		change           func()
	}{
		{"release", in("current", "weir.yaml"), in("releases/1/weir.yaml"), func() { link("releases/2", "current") }},
		{"chain", in("chain"), in("releases/2/weir.yaml"), func() { link("../"+filepath.Base(folder)+"/releases/1", "current") }},
		{"entry", in("rules"), in("elsewhere/rules"), func() { write(t, in("elsewhere/rules"), ruled("2/h")) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := opened(t, c.path)
			write(t, c.file, ruled(fmt.Sprintf("%d/h", 10+i)))
			reports := watched(t, s, nil)
			next(t, reports) // so the watch has begun
			before := inForce(s)
			c.change()
			if r := next(t, reports); r.Err != nil || inForce(s) == before {
				t.Errorf("got %v, %s in force, want another limit", r.Err, inForce(s))
			}
		})
	}
}

// Decisions during 10,000 reloads are those of the rules before or after, never of none; and no unit is lost or minted.
func TestReloadsUnderLoadLoseNoDecision(t *testing.T) {
	file := filepath.Join(t.TempDir(), "weir.yaml")
	write(t, file, ruled("1000000/h"))
	s := opened(t, file)
	engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return 0 }})
	var done atomic.Bool
	var admitted atomic.Int64
	var callers sync.WaitGroup
	for range 2 {
		callers.Go(func() {
			var o rules.Outcome
			for !done.Load() {
				runtime.Gosched() // for the reloads
				s.Config().Decide(rules.Attributes{}, 1, &o)
				if o.Verdict != rules.Ask || len(o.Requests) != 1 {
					t.Errorf("got verdict %d of %d requests", o.Verdict, len(o.Requests))
					return
				}
				if d, err := engine.Take(context.Background(), o.Requests...); err != nil {
					t.Error(err)
				} else if d.Allowed {
					admitted.Add(1)
				}
			}
		})
	}
	reloads := 10_000
	if testing.Short() {
		reloads = 1000
	}
	for i := range reloads {
		write(t, file, ruled([]string{"1000000/h", "2000000/h"}[i%2]))
		if r := s.Reload(); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	done.Store(true)
	callers.Wait()
	if admitted.Load() == 0 || admitted.Load() > 2_000_000 {
		t.Errorf("%d admitted", admitted.Load())
	}
}
