package notice

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"time"

	"github.com/weirflow/weir"
)

// look is a question: how many units of a quota a key has used.
type look struct {
	id    uint64
	quota *quota
	key   string
	tries int // that failed
}

const (
	mostAtOnce  = 100
	gap         = 20 * time.Millisecond // between two batches, so looks are at most 5,000 a second
	lookTimeout = 2 * time.Second
	mostTries   = 60
)

// batch returns the look with those that wait behind it, after a short pause, because more may come.
func (n *Notices) batch(first look) []look {
	time.Sleep(gap)
	all := []look{first}
	for len(all) < mostAtOnce {
		select {
		case l := <-n.looks:
			all = append(all, l)
		default:
			return all
		}
	}
	return all
}

// mark is a threshold that a look has found reached.
type mark struct {
	of      int // the look
	percent int64
}

// lookAt asks for the used units, takes the marks of the thresholds reached, and reports those that it got.
func (n *Notices) lookAt(ctx context.Context, all []look) {
	peeks := make([]weir.Call, len(all))
	for i, l := range all {
		peeks[i] = weir.Call{Op: weir.OpPeek, Requests: []weir.Request{l.quota.alone.For(l.key, 0)}}
	}
	found := n.each(ctx, peeks)
	var marks []mark
	var takes []weir.Call
	for i := range all {
		for _, percent := range thresholds {
			if d := &found[i].Decision; found[i].Err == nil && d.Limit > 0 && d.Limit < weir.MaxCount && reached(usedOf(d), d.Limit, percent) {
				call, err := markOf(&all[i], d, percent)
				found[i].Err = cmp.Or(found[i].Err, err)
				marks, takes = append(marks, mark{i, percent}), append(takes, call)
			}
		}
	}
	before := n.overflow()
	taken := n.each(ctx, takes)
	crowded := n.overflow() != before
	for i, r := range taken {
		m := marks[i]
		switch d := &found[m.of].Decision; {
		case r.Err != nil:
			found[m.of].Err = cmp.Or(found[m.of].Err, r.Err)
		case r.Decision.Allowed, crowded && n.shares(ctx, takes[i]) && n.seen.isNew(all[m.of].id, unitsAt(d.Limit, m.percent)):
			n.tell(newEvent(&all[m.of], d, m.percent, "msg_"+rand.Text()))
		}
	}
	n.finish(ctx, all, found)
}

// overflow returns how many marks were taken or peeked at on states that keys without room in the memory engine share.
func (n *Notices) overflow() uint64 {
	if n.memory == nil {
		return 0
	}
	for _, r := range n.memory.Stats().Rules {
		if r.Rule == MarkRule {
			return r.Overflow
		}
	}
	return 0
}

// shares reports whether a mark is on such a state, so that a refusal may be due to that of another key. This process
// is then the only one that reports, and goes by its own past reports.
func (n *Notices) shares(ctx context.Context, take weir.Call) bool {
	before := n.overflow()
	n.each(ctx, []weir.Call{{Op: weir.OpPeek, Requests: take.Requests}})
	return n.overflow() != before
}

// finish notes the outcome of looks. Those that failed are tried again after a pause, and once more after that.
func (n *Notices) finish(ctx context.Context, all []look, found []weir.Result) {
	now := time.Now()
	var again []look
	for i := range all {
		l := &all[i]
		switch {
		case found[i].Err == nil && l.tries > 0: // once more, because what was counted in an outage may still arrive
			l.tries = 0
			again = append(again, *l)
		case found[i].Err == nil:
			if n.seen.set(l.id, n.after(l, &found[i].Decision, now)) {
				n.queue(look{id: l.id, quota: l.quota, key: l.key})
			}
		case l.tries+1 < mostTries:
			l.tries++
			again = append(again, *l)
		default:
			n.counts.unlooked.Add(1)
			n.seen.set(l.id, quiet(now))
		}
	}
	if len(again) == 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(lookAgain):
	}
	for _, l := range again {
		n.queue(l)
	}
}

// each makes calls in one, within lookTimeout. An error of all is that of each.
func (n *Notices) each(ctx context.Context, calls []weir.Call) []weir.Result {
	results := make([]weir.Result, len(calls))
	if len(calls) == 0 {
		return results
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if err := n.options.Engine.Each(ctx, calls, results); err != nil {
		for i := range results {
			results[i].Err = cmp.Or(results[i].Err, err)
		}
	}
	return results
}

// after returns what is known after a look.
func (n *Notices) after(l *look, d *weir.Decision, now time.Time) state {
	known := state{told: usedOf(d), until: now.Add(lasts(l.quota, d)).UnixNano(), next: math.MaxInt64, left: math.MaxInt64}
	for _, percent := range thresholds {
		if at, used := unitsAt(d.Limit, percent), usedOf(d); used < at {
			known.next, known.left = at, max((at-used)/n.spread, 1)
			break
		}
	}
	return known
}

// lasts returns how long a mark lasts.
func lasts(f *quota, d *weir.Decision) time.Duration {
	if f.window > 0 {
		return f.window
	}
	return min(max(d.LimitReset, time.Second), weir.MaxPeriod)
}

// markOf returns the take of a mark. Its key is a hash, which names nobody. A limit with another number is marked anew.
func markOf(l *look, d *weir.Decision, percent int64) (weir.Call, error) {
	rule, err := weir.NewRule(MarkRule, weir.Concurrency{Slots: 1, Lease: lasts(l.quota, d)})
	if err != nil {
		return weir.Call{}, err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d", l.quota.alone.Name(), l.quota.text, l.key, percent))
	return weir.Call{Op: weir.OpTake, Requests: []weir.Request{rule.For(hex.EncodeToString(sum[:16]), 1)}, Lease: weir.Kit.NewLease()}, nil
}
