package rulefiles

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
	var concerns map[string]bool
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		report(Reload{Err: fmt.Errorf("changes of rules files go unnoticed until a signal: %w", err)})
		watcher = &fsnotify.Watcher{} // nil channels
	} else {
		defer func() { _ = watcher.Close() }()
		concerns = s.follow(watcher, report)
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
			concerns = s.follow(watcher, report)
		case e := <-watcher.Events:
			if !concerns[e.Name] && !isRules(e.Name) {
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

// follow watches what may change the files, and returns the paths there whose change concerns the rules. Watching a directory
// again does nothing.
func (s *Set) follow(watcher *fsnotify.Watcher, report func(Reload)) (concerns map[string]bool) {
	concerns = map[string]bool{}
	if watcher.Events == nil {
		return concerns
	}
	wanted := map[string]bool{}
	for _, path := range s.paths {
		names, _ := filesOf(path)
		for _, place := range append(names, path) {
			for _, step := range trail(place) {
				concerns[step], wanted[filepath.Dir(step)] = true, true
				if info, err := os.Lstat(step); err == nil && info.IsDir() {
					wanted[step] = true
				}
			}
		}
	}
	for _, old := range watcher.WatchList() {
		if !wanted[old] {
			_ = watcher.Remove(old) // an error means that the directory is gone
		}
	}
	for directory := range wanted {
		if err := watcher.Add(directory); err != nil {
			report(Reload{Err: fmt.Errorf("changes in %s go unnoticed until a signal: %w", directory, err)})
		}
	}
	return concerns
}

// maxLinks bounds the links on the way to a file.
const maxLinks = 32

// trail returns the links on the way to a file, and the file itself. A change of any of them may change what is read:
// Kubernetes replaces the link ..data beside the links to the files of a ConfigMap, and deployments replace the link to their
// newest release.
func trail(path string) (steps []string) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	const slash = string(filepath.Separator)
	root := filepath.VolumeName(path) + slash
	at, rest, links := root, strings.Split(path[len(root):], slash), 0
	for len(rest) > 0 && links < maxLinks {
		at, rest = filepath.Join(at, rest[0]), rest[1:] // no link is before it, so .. is the directory above
		target, err := os.Readlink(at)
		if err != nil {
			continue
		}
		links++
		steps, rest = append(steps, at), append(strings.Split(target, slash), rest...)
		if at = filepath.Dir(at); filepath.IsAbs(target) {
			at = root
		}
	}
	return append(steps, at)
}
