package rulefiles

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// Set holds the Config in force. A reload replaces it at once, and no decision waits for that. A reload of files with
// problems leaves it. A Set is safe for concurrent use.
type Set struct {
	options Options
	paths   []string
	current atomic.Pointer[loaded]
	last    atomic.Pointer[Reload]

	mu   sync.Mutex // one reload at a time
	seen [sha256.Size]byte
}

// loaded is a Config, with warnings about texts without effect.
type loaded struct {
	config   *rules.Config
	warnings rules.Problems
}

// Reload is the outcome of a reload.
type Reload struct {
	Before  *rules.Config // the rules that were in force; nil if the Err is not about files
	Now     *rules.Config // the rules in force; nil like Before
	Restart []string      // the fields that differ and that take effect at the next start: listen, engine, peers, deadline, on_failure
	Err     error         // why the previous rules stay in force, or why changes go unnoticed
}

// Open loads files into a Set. The error is rules.Problems.
func Open(o Options, paths ...string) (*Set, error) {
	s := &Set{options: o, paths: paths}
	files, problems := o.read(paths)
	config, err := o.parse(files, problems)
	if err != nil {
		return nil, err
	}
	s.seen = sum(files)
	s.begin(&loaded{config, o.lint(config, files, paths)})
	return s, nil
}

func (s *Set) begin(with *loaded) {
	s.current.Store(with)
	s.last.Store(&Reload{Before: with.config, Now: with.config})
}

// Of returns a Set of rules that come from elsewhere than files. Put replaces them; Reload and Watch read nothing.
func Of(config *rules.Config) *Set {
	s := &Set{}
	s.begin(&loaded{config: config})
	return s
}

// Put replaces the rules of Of. The problems are those of rules that are not in force; nil without any.
func (s *Set) Put(config *rules.Config, problems error) Reload {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.current.Swap(&loaded{config: config}).config
	r := Reload{Before: before, Now: config, Restart: restart(before, config), Err: problems}
	s.last.Store(&r)
	return r
}

// Check lets later reloads refuse rules that an engine cannot hold. Call it before Watch.
func (s *Set) Check(check func(rules ...*weir.Rule) error) { s.options.Check = check }

// Config returns the rules in force.
func (s *Set) Config() *rules.Config { return s.current.Load().config }

// Warnings returns what the files of the rules in force say that has no effect.
func (s *Set) Warnings() rules.Problems { return s.current.Load().warnings }

// Last returns what became of the last reload.
func (s *Set) Last() Reload { return *s.last.Load() }

// Reload reads the files again.
func (s *Set) Reload() Reload {
	r, _ := s.reload()
	return r
}

// reload reads the files again. It returns false for files that are as they were at the last time.
func (s *Set) reload() (r Reload, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	files, problems := s.options.read(s.paths)
	now := sum(files)
	if now == s.seen && problems == nil {
		return s.Last(), false
	}
	s.seen = now
	config, err := s.options.parse(files, problems)
	if err != nil {
		r = Reload{Before: s.Config(), Now: s.Config(), Err: err}
	} else {
		before := s.current.Swap(&loaded{config, s.options.lint(config, files, s.paths)}).config
		r = Reload{Before: before, Now: config, Restart: restart(before, config)}
	}
	s.last.Store(&r)
	return r, true
}

// restart returns the fields that take effect at the next start.
func restart(before, now *rules.Config) (fields []string) {
	if !maps.Equal(before.Listen, now.Listen) {
		fields = append(fields, "listen")
	}
	for _, field := range []string{"engine", "peers", "deadline"} {
		if before.Engine[field] != now.Engine[field] {
			fields = append(fields, field)
		}
	}
	if !maps.Equal(before.Policies(), now.Policies()) {
		fields = append(fields, "on_failure")
	}
	return fields
}

// sum tells files from others, with their names.
func sum(files []rules.File) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%q %d ", f.Name, len(f.Content))
		h.Write(f.Content)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
