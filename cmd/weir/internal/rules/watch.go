package rules

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// The times of a watch. Editors write a file in several steps, and a reload in between would report half a file.
const (
	quiet    = 100 * time.Millisecond
	patience = time.Second // the longest wait for quiet
)

// Watch reloads the files when they change, and on each signal of again, until the context ends. It reports each reload,
// except of files that are as they were. If the system cannot notify of changes, it reports that and waits for signals.
func (s *Set) Watch(ctx context.Context, again <-chan os.Signal, report func(Reload)) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		report(Reload{Err: fmt.Errorf("changes of rules files go unnoticed until a signal: %w", err)})
		watcher = &fsnotify.Watcher{} // nil channels
	} else {
		defer func() { _ = watcher.Close() }()
		s.follow(watcher, report)
	}
	timer := time.NewTimer(0) // for changes before the watch began
	var first time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-again:
			report(s.Reload())
		case <-timer.C:
			first = time.Time{}
			if r, changed := s.reload(); changed {
				report(r)
			}
			s.follow(watcher, report)
		case e := <-watcher.Events:
			if !s.concerns(e.Name) {
				continue
			}
			if first.IsZero() {
				first = time.Now()
			}
			timer.Reset(max(0, min(quiet, patience-time.Since(first))))
		case err := <-watcher.Errors:
			report(Reload{Err: fmt.Errorf("changes of rules files may go unnoticed until a signal: %w", err)})
		}
	}
}

// follow watches the directories that hold the files, and those that links lead to. Watching a directory again does
// nothing. Kubernetes changes a mounted ConfigMap by another link named ..data in the same directory.
func (s *Set) follow(watcher *fsnotify.Watcher, report func(Reload)) {
	if watcher.Events == nil {
		return
	}
	for _, path := range s.paths {
		places := []string{path}
		if target, err := filepath.EvalSymlinks(path); err == nil && target != filepath.Clean(path) {
			places = append(places, target)
		}
		for _, place := range places {
			directories := []string{filepath.Dir(place)}
			if info, err := os.Stat(place); err == nil && info.IsDir() {
				directories = append(directories, place)
			}
			for _, directory := range directories {
				if err := watcher.Add(directory); err != nil {
					report(Reload{Err: fmt.Errorf("changes in %s go unnoticed until a signal: %w", directory, err)})
				}
			}
		}
	}
}

// concerns reports whether a change of a file may change the rules.
func (s *Set) concerns(name string) bool {
	base := filepath.Base(name)
	if strings.HasPrefix(base, "..") || strings.HasSuffix(base, ".yaml") || strings.HasSuffix(base, ".yml") {
		return true
	}
	for _, path := range s.paths {
		target, _ := filepath.EvalSymlinks(path)
		if base == filepath.Base(path) || base == filepath.Base(target) {
			return true
		}
	}
	return false
}
