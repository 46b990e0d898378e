package serve

import (
	"sync/atomic"
	"time"
)

// upkeep is work that a daemon does beside decisions, such as saves, and that goes on failing while decisions work. Goroutines share it.
type upkeep struct {
	done    atomic.Pointer[time.Time] // the last time that it worked; nil before the first
	failing atomic.Pointer[time.Time] // since when it fails; nil while it works
}

// note notes how the work has ended.
func (u *upkeep) note(err error) {
	now := time.Now()
	switch {
	case err == nil:
		u.done.Store(&now)
		u.failing.Store(nil)
	case u.failing.Load() == nil:
		u.failing.Store(&now)
	}
}

// fails returns since when the work fails, for people, or "".
func (u *upkeep) fails() string {
	if since := u.failing.Load(); since != nil {
		return since.UTC().Format(time.RFC3339)
	}
	return ""
}

// savedAt returns what tells when the state was last saved, and whether the last save failed, or nil without a file.
func (o *options) savedAt() func() (at time.Time, fails bool) {
	if o.state.path == "" {
		return nil
	}
	return func() (at time.Time, fails bool) {
		if done := o.state.saves.done.Load(); done != nil {
			at = *done
		}
		return at, o.state.saves.failing.Load() != nil
	}
}

// recordFails returns a function that reports whether the record cannot be written, or nil without one.
func (o *options) recordFails() func() bool {
	if o.record.path == "" {
		return nil
	}
	return func() bool { return o.record.writes.failing.Load() != nil }
}

// troubles are what does not work, for callers with the scope admin, although the daemon decides. The log has the errors.
func (o *options) troubles() (all []string) {
	if since := o.state.saves.fails(); since != "" {
		all = append(all, "the state has not been saved since "+since+", and the previous file stays; the log says why")
	}
	if since := o.record.writes.fails(); since != "" {
		all = append(all, "the record has not been written since "+since+"; the log says why")
	}
	if o.ports.keys.Failing() {
		all = append(all, "a file of tokens or certificates has a problem, and the previous ones stay in use; the log says which")
	}
	return all
}
