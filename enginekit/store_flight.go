package enginekit

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir"
)

// The pauses between the attempts of a flight, and their number.
const (
	firstPause   = time.Millisecond // doubles with each attempt; the flight takes a random part of it
	longestPause = 64 * time.Millisecond
	mostAttempts = 20
)

// fly decides asks whose rows are busy for it, again and again until the store has taken all of them.
func (e *StoreEngine) fly(asks []*question) {
	for attempt := range mostAttempts {
		if attempt > 1 {
			time.Sleep(rand.N(min(firstPause<<attempt, longestPause)))
		}
		if asks = e.attempt(asks); len(asks) == 0 {
			break
		}
	}
	e.fail(asks, errContended, weir.CountedNo)
	e.sweep()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.flights--
	e.dispatch()
}

// attempt decides the asks once. It answers those whose changes the store has made, and returns the others.
func (e *StoreEngine) attempt(asks []*question) (again []*question) {
	ctx, cancel := context.WithTimeout(context.Background(), e.options.Timeout)
	defer cancel()
	asks, rows := e.staying(asks, inFlight)
	if len(asks) == 0 {
		return nil
	}
	if e.locks(asks, rows) {
		if asks, rows = e.staying(asks, sent); len(asks) == 0 {
			return nil
		}
		return e.lock(ctx, asks, rows)
	}
	now, known := e.now()
	if !known || slices.ContainsFunc(rows, func(r *row) bool { return r.stale }) {
		if err := e.load(ctx, rows); errors.Is(err, ErrConflict) {
			return asks
		} else if err != nil {
			e.fail(asks, err, weir.CountedNo)
			return nil
		}
		now, _ = e.now()
	}
	if asks, rows = e.staying(asks, sent); len(asks) == 0 {
		return nil
	}
	return e.settle(ctx, now, decide(asks, rows, now))
}

// locks reports whether the rows have to be locked: their swaps keep failing, and not all asks are peeks.
func (e *StoreEngine) locks(asks []*question, rows []*row) bool {
	return e.locker != nil && slices.ContainsFunc(rows, func(r *row) bool { return r.conflicts >= e.options.Conflicts }) &&
		slices.ContainsFunc(asks, func(a *question) bool { return a.call.Op != weir.OpPeek })
}

// staying returns the asks whose callers still wait, and their rows in the order of their keys. It frees the other rows. The asks
// are marked before they are decided, because a decision that is sent includes all of them.
func (e *StoreEngine) staying(asks []*question, to place) (_ []*question, rows []*row) {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := rowsOf(asks)
	asks = slices.DeleteFunc(asks, func(a *question) bool { return a.place == left })
	rows = rowsOf(asks)
	if len(rows) < len(all) {
		e.release(slices.DeleteFunc(all, func(r *row) bool { return slices.Contains(rows, r) }))
	}
	for _, a := range asks {
		a.place = to
	}
	return asks, rows
}

// unsent marks asks that were certainly not made.
func (e *StoreEngine) unsent(asks []*question) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range asks {
		if a.place != left {
			a.place = inFlight
		}
	}
}

// rowsOf returns the rows of asks in the order of their keys.
func rowsOf(asks []*question) (rows []*row) {
	seen := make(map[*row]bool, len(asks))
	for _, a := range asks {
		for _, r := range a.rows {
			if !seen[r] {
				seen[r] = true
				rows = append(rows, r)
			}
		}
	}
	slices.SortFunc(rows, func(a, b *row) int { return strings.Compare(a.key, b.key) })
	return rows
}

func keysOf(rows []*row) (keys []string) {
	for _, r := range rows {
		keys = append(keys, r.key)
	}
	return keys
}

// load reads rows and the clock.
func (e *StoreEngine) load(ctx context.Context, rows []*row) error {
	found, now, err := e.store.Load(ctx, keysOf(rows))
	if err != nil {
		return err
	}
	e.tell(now)
	for i, r := range rows {
		r.set(found[i])
		r.loaded = true
	}
	return nil
}

// group is rows that are written together, because calls with several keys join them, and the asks for them.
type group struct {
	rows []*row
	asks []*question
}

// decide decides asks in order, each on the rows as the one before leaves them.
func decide(asks []*question, rows []*row, now int64) (groups []*group) {
	for _, r := range rows {
		r.next, r.changed, r.group = r.states, false, nil
	}
	for _, a := range asks {
		a.run(now)
		g := a.rows[0].group
		if g == nil {
			g = &group{}
			groups = append(groups, g)
		}
		for _, r := range a.rows {
			g = g.join(r)
		}
		g.asks = append(g.asks, a)
	}
	return slices.DeleteFunc(groups, func(g *group) bool { return len(g.rows) == 0 })
}

// join adds a row and its group.
func (g *group) join(r *row) *group {
	from := r.group
	switch {
	case from == g:
		return g
	case from == nil:
		r.group, g.rows = g, append(g.rows, r)
		return g
	case len(from.rows) > len(g.rows):
		g, from = from, g
	}
	for _, moved := range from.rows {
		moved.group = g
	}
	g.rows, g.asks = append(g.rows, from.rows...), append(g.asks, from.asks...)
	from.rows, from.asks = nil, nil
	return g
}

// writes reports whether the decisions changed a row, and proven whether all rows were read for this attempt.
func (g *group) writes() bool {
	return slices.ContainsFunc(g.rows, func(r *row) bool { return r.changed })
}

func (g *group) proven() bool {
	return !slices.ContainsFunc(g.rows, func(r *row) bool { return !r.loaded })
}

// settle makes the changes of groups. It answers the asks of those that were made, and returns the others.
func (e *StoreEngine) settle(ctx context.Context, now int64, groups []*group) (again []*question) {
	var open []*group
	written := false
	for _, g := range groups {
		switch {
		case g.writes():
			written = true
			open = append(open, g)
		case g.proven():
			e.done(g)
		default:
			open = append(open, g)
		}
	}
	switch {
	case len(open) == 0:
		return nil
	case !written:
		return e.confirm(ctx, open)
	}
	return e.swap(ctx, now, open)
}

// confirm reads the rows of groups that change nothing, and answers the asks if the rows are as the engine thought.
func (e *StoreEngine) confirm(ctx context.Context, groups []*group) (again []*question) {
	var rows []*row
	var versions []int64
	for _, g := range groups {
		rows = append(rows, g.rows...)
	}
	for _, r := range rows {
		versions = append(versions, r.version)
	}
	for _, g := range groups {
		e.unsent(g.asks)
	}
	err := e.load(ctx, rows)
	for _, g := range groups {
		same := true
		for range g.rows {
			same = same && rows[0].version == versions[0]
			rows, versions = rows[1:], versions[1:]
		}
		switch {
		case errors.Is(err, ErrConflict):
			again = append(again, g.asks...)
		case err != nil:
			e.fail(g.asks, err, weir.CountedNo)
		case same:
			e.done(g)
		default:
			again = append(again, g.asks...)
		}
	}
	return again
}

// swap makes the changes of groups.
func (e *StoreEngine) swap(ctx context.Context, at int64, groups []*group) (again []*question) {
	changes := make([]Change, len(groups))
	for i, g := range groups {
		slices.SortFunc(g.rows, func(a, b *row) int { return strings.Compare(a.key, b.key) })
		for _, r := range g.rows {
			changes[i].Writes = append(changes[i].Writes, r.write())
		}
	}
	if e.options.Clock != nil {
		at = math.MinInt64
	}
	now, err := e.store.Swap(ctx, at, changes)
	switch {
	case errors.Is(err, ErrConflict):
	case err != nil:
		e.lost(groups, changes, err)
		return nil
	default:
		e.tell(now)
	}
	for i, g := range groups {
		if err == nil && (changes[i].Done || made(changes[i].Writes)) {
			e.wrote(g, changes[i].Writes)
			continue
		}
		g.refused(changes[i].Writes, err == nil && now < at)
		e.unsent(g.asks)
		again = append(again, g.asks...)
	}
	return again
}

// made reports whether the store has the writes of a change that it did not make: a driver sent the swap twice.
func made(writes []Write) bool {
	return !slices.ContainsFunc(writes, func(w Write) bool {
		return w.Found == nil || w.New != 0 && w.Found.Version != w.New || w.New == 0 && w.Found.Version != w.Old
	})
}

// refused takes in what the store has instead. early says that the clock was behind, which is no conflict.
func (g *group) refused(writes []Write, early bool) {
	other := false
	for i, r := range g.rows {
		if found := writes[i].Found; found != nil && found.Version != r.version {
			r.set(*found)
			other = true
			r.conflicts++
		}
	}
	if other || early {
		return
	}
	for _, r := range g.rows { // another writer was quicker
		r.stale = true
		r.conflicts++
	}
}

// lock decides asks while the store has locked their rows.
func (e *StoreEngine) lock(ctx context.Context, asks []*question, rows []*row) (again []*question) {
	all := &group{rows: rows, asks: asks}
	var written []Write
	err := e.locker.Lock(ctx, keysOf(rows), func(found []Row, now int64) (writes []Write) {
		e.tell(now)
		now, _ = e.now()
		for i, r := range rows {
			r.set(found[i])
		}
		decide(asks, rows, now)
		written = written[:0]
		for _, r := range rows {
			w := r.write()
			if written = append(written, w); r.changed {
				writes = append(writes, w)
			}
		}
		return writes
	})
	switch {
	case errors.Is(err, ErrConflict):
		e.unsent(asks)
		return asks
	case err != nil:
		e.lost([]*group{all}, []Change{{Writes: written}}, err)
		return nil
	}
	e.wrote(all, written)
	return nil
}

// lost ends groups after an error of the store. If the store may have made their changes, it reads the rows: a row with the
// new version proves that the change was made. Otherwise the change may still come.
func (e *StoreEngine) lost(groups []*group, changes []Change, err error) {
	counted := weir.WasCounted(err)
	read := counted != weir.CountedNo && e.reread(changes)
	for i, g := range groups {
		writes := changes[i].Writes
		switch {
		case read && g.writes() && len(writes) == len(g.rows) && made(writes):
			e.wrote(g, writes)
		default:
			for _, r := range g.rows {
				r.stale = true
			}
			e.fail(g.asks, err, counted)
		}
	}
}

// patience bounds how long the engine takes to learn whether a lost change was made.
const patience = 250 * time.Millisecond

// reread finds the rows of changes.
func (e *StoreEngine) reread(changes []Change) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var keys []string
	for i := range changes {
		for _, w := range changes[i].Writes {
			keys = append(keys, w.Key)
		}
	}
	found, _, err := e.store.Load(ctx, keys)
	if err != nil || len(keys) == 0 {
		return false
	}
	for i := range changes {
		for j := range changes[i].Writes {
			changes[i].Writes[j].Found, found = &found[0], found[1:]
		}
	}
	return true
}

// wrote answers the asks of a group whose writes were made.
func (e *StoreEngine) wrote(g *group, writes []Write) {
	fresh := 0
	for i, r := range g.rows {
		if w := &writes[i]; w.New != 0 {
			if w.Old == 0 {
				fresh++
			}
			r.version, r.states, r.damaged = w.New, r.next, false
		}
	}
	e.created.Add(int64(fresh))
	e.done(g)
}

// done answers the asks of a group and frees its rows.
func (e *StoreEngine) done(g *group) { e.end(g.asks, g.rows, nil) }

// fail answers asks with an error. Their rows are free for others.
func (e *StoreEngine) fail(asks []*question, err error, counted weir.Counted) {
	for _, a := range asks {
		a.err = e.failed(a, err, counted)
	}
	e.end(asks, rowsOf(asks), err)
}

func (e *StoreEngine) end(asks []*question, rows []*row, err error) {
	if len(asks) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range asks {
		if a.err != nil && err == nil { // the decision itself failed
			a.err = e.failed(a, a.err, weir.CountedNo)
		}
		if a.place != left {
			a.place = answered
			a.done <- struct{}{}
		}
	}
	e.release(rows)
	e.dispatch()
}
