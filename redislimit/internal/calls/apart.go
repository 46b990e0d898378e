package calls

import (
	"cmp"
	"context"
	"time"

	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// takeApart decides each submission of a call on its own, because the servers refused the whole call and did nothing.
// Only the callers of these submissions wait for it.
func (l *Lanes) takeApart(submissions []*Submission, refused error) {
	if fault.Crossing(refused) {
		l.KeepToOneSlot()
	}
	for _, s := range submissions {
		go func() {
			l.oneByOne(s)
			l.finish(s, nil)
		}()
	}
}

// How often, and after what pause, the engine repeats a decision whose keys are moving to another node of a cluster.
const (
	MovingTries = 20
	movingPause = 5 * time.Millisecond
)

// oneByOne makes each decision on its own, in order. While a slot moves, a decision on one key finds the key on one of two
// nodes. A decision on several keys is repeated for a while, until all of them have moved.
func (l *Lanes) oneByOne(s *Submission) {
	tries := MovingTries
	for i := s.Decided; i < len(s.Decisions); i++ {
		alone := []*Submission{{Decisions: s.Decisions[i : i+1], Ctx: s.Ctx}}
		lane := alone[0].lane()
		exchange := func() error { return l.exchange(lane, alone) }
		err := exchange()
		if fault.Moving(err) && s.Decisions[i].Divisible() {
			exchange = func() error { return l.keyByKey(lane, &s.Decisions[i], s.Ctx) }
			err = exchange()
		}
		for ; fault.Moving(err) && tries > 0; tries-- {
			time.Sleep(movingPause)
			err = exchange()
		}
		if fault.Crossing(err) {
			err = fault.ErrCrossing
		}
		if err != nil {
			s.Decisions[i].Err = err
		}
	}
}

// keyByKey makes a divisible decision with a call for each key. After an error a release or an undo may have been made in
// part; Redis knows the rest.
func (l *Lanes) keyByKey(lane int, d *wire.Decision, ctx context.Context) error {
	for i := range d.Parts {
		if d.Parts[i].Joins {
			continue
		}
		var places []int
		own := *d
		own.Parts = nil
		for j := range d.Parts {
			if d.Parts[j].Key == d.Parts[i].Key {
				places, own.Parts = append(places, j), append(own.Parts, d.Parts[j])
			}
		}
		alone := &Submission{Decisions: []wire.Decision{own}, Ctx: ctx}
		if err := cmp.Or(l.exchange(lane, []*Submission{alone}), alone.Decisions[0].Err); err != nil {
			return err
		}
		for k, j := range places {
			d.Parts[j] = alone.Decisions[0].Parts[k]
		}
		d.Now, d.Admitted = alone.Decisions[0].Now, alone.Decisions[0].Admitted
	}
	return nil
}
