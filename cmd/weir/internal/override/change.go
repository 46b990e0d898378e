package override

import (
	"context"
	"log/slog"
	"time"

	"github.com/weirflow/weir"
)

// pollEvery is how often a table looks for entries that other daemons have made.
const pollEvery = 500 * time.Millisecond

// open returns the table of a store, with its entries.
func open(ctx context.Context, s store, log *slog.Logger) (*Table, error) {
	t := &Table{store: s, log: log, unused: weir.NewMemory(weir.MemoryOptions{})}
	return t, t.refresh(ctx)
}

// refresh takes over the entries of the store.
func (t *Table) refresh(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	entries, changed, err := t.store.load(ctx)
	if err != nil || !changed {
		return err
	}
	t.forget()
	return t.use(entries)
}

// use puts entries into force. The caller holds the lock.
func (t *Table) use(entries []Entry) error {
	unread := 0
	x, err := newIndex(entries, time.Now(), func(e Entry, err error) {
		if unread++; unread <= mostLogged {
			t.log.Warn("an override is not in force", "rule", e.Rule, "key", e.Key, "prefix", e.Prefix, "limit", e.Limit, "until", e.Until, "err", err)
		}
	})
	if more := unread - mostLogged; more > 0 {
		t.log.Warn("more overrides are not in force", "overrides", more)
	}
	if err != nil {
		return err
	}
	t.current.Store(x)
	if changed := t.changed.Load(); changed != nil {
		(*changed)()
	}
	return nil
}

// mostLogged bounds the lines about overrides at one time.
const mostLogged = 20

// Idle logs the entries that change no decision, with the reason that why returns.
func (t *Table) Idle(why func(*Entry) string) {
	idle := 0
	for _, e := range t.Entries() {
		reason := why(&e)
		if reason == "" {
			continue
		}
		if idle++; idle <= mostLogged {
			t.log.Warn("an override has no effect", "rule", e.Rule, "key", e.Key, "prefix", e.Prefix, "limit", e.Limit, "until", e.Until, "why", reason)
		}
	}
	if more := idle - mostLogged; more > 0 {
		t.log.Warn("more overrides have no effect", "overrides", more)
	}
}

// OnChange has changed called after each change.
func (t *Table) OnChange(changed func()) { t.changed.Store(&changed) }

// Set puts an entry into force, in place of that of the same rule and key. It returns that, or nil, and writes the entry as
// it is in force. Other daemons follow within a second.
func (t *Table) Set(ctx context.Context, e *Entry, engine weir.Engine) (before *Entry, err error) {
	if err := e.check(engine, time.Now()); err != nil {
		return nil, err
	}
	e.Until = e.Until.UTC().Round(0) // as it comes back from the store
	return t.change(ctx, e.target(), e)
}

// Remove ends an entry, and returns it.
func (t *Table) Remove(ctx context.Context, rule, key string, prefix bool) (before *Entry, err error) {
	return t.change(ctx, target{rule: rule, key: key, prefix: prefix}, nil)
}

// all returns the entries in force, with those of modes.
func (t *Table) all() []Entry {
	entries := t.Entries()
	if x := t.current.Load(); x != nil {
		entries = append(entries, x.modes...)
	}
	return entries
}

func (t *Table) change(ctx context.Context, at target, e *Entry) (before *Entry, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var after []Entry
	for _, known := range t.all() {
		if known.target() == at {
			before = &known
		} else {
			after = append(after, known)
		}
	}
	if e != nil {
		after = append(after, *e)
	} else if before == nil {
		return nil, ErrUnknown
	}
	if _, err := newIndex(after, time.Now(), func(Entry, error) {}); err != nil { // before anything is stored
		return nil, err
	}
	if err := t.store.put(ctx, at, e); err != nil {
		return nil, err
	}
	return before, t.use(after)
}

// Watch follows the changes of other daemons until the context ends. It logs when it cannot, and when it can again.
func (t *Table) Watch(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for failing := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		within, cancel := context.WithTimeout(ctx, pollEvery)
		err := t.refresh(within)
		cancel()
		if failed := err != nil; failed != failing && ctx.Err() == nil {
			if failing = failed; failing {
				t.log.Warn("overrides of other daemons are not seen", "err", err)
			} else {
				t.log.Info("overrides of other daemons are seen again")
			}
		}
	}
}
