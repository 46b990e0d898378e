package calls

import (
	"context"
	"sync/atomic"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// Submission is the decisions of one caller in one call of the script, each on its own.
//
// The order of the fields groups those that a waiting caller writes, those that its call writes, and those that the
// caller then reads.
type Submission struct {
	done      chan struct{}   // receives once, at the answer
	Ctx       context.Context // the caller's; nil without a caller
	Decisions []wire.Decision
	Decided   int          // how many of the decisions, after a call that could not make all of them
	state     atomic.Int32 // the holder: open, answered or gone

	position position // in the committer's queue, under its lock
	Err      error    // error of the call as a whole
	Composed Composed
	One      [1]wire.Decision // most submissions are one decision of one part

	Name  []byte // space for the key of a single take
	Few   [2]wire.Part
	After func() // called with the answer; nil with a caller
}

// The holder of a submission.
const (
	open int32 = iota
	answered
	gone     // the caller did not wait for the answer
	noCaller // no caller waited for it
)

// NewSubmission returns the submission of decisions.
func NewSubmission(decisions ...wire.Decision) *Submission {
	return &Submission{done: make(chan struct{}, 1), Decisions: decisions}
}

func (s *Submission) lane() int { return s.Decisions[0].Parts[0].Lane }

// deliver gives the answer to the caller and reports whether the caller was still waiting.
func (s *Submission) deliver() bool {
	if !s.state.CompareAndSwap(open, answered) {
		return false
	}
	s.done <- struct{}{}
	return true
}

// failed returns the error of the submission after that of a call. If earlier calls have made some of its decisions,
// only the others have the error.
func (s *Submission) failed(err error) error {
	if err == nil || s.Decided == 0 {
		return err
	}
	for i := s.Decided; i < len(s.Decisions); i++ {
		s.Decisions[i].Err = err
	}
	return nil
}

// Clear makes an answered submission ready for other decisions.
func (s *Submission) Clear() {
	s.Err, s.Ctx, s.Decided = nil, nil, 0
	s.state.Store(open)
}

// position is the place of a submission in a queue.
type position struct {
	before, behind *Submission
	waiting        bool
}

// Composed is the answer to the only decision of a submission. The call composes it, not the caller: while thousands of
// callers wait, their stacks leave the processor's caches, and each would then fetch its own for this.
type Composed struct {
	Asked   bool          // the call has to compose the answer
	Verb    wire.Op       // the caller's
	Request int           // the index of the request that has the names
	Answer  weir.Decision // without the names of its rule and key
}

// compose composes the answer if the caller wants it.
func (s *Submission) compose() {
	if c := &s.Composed; c.Asked && s.Err == nil && s.One[0].Err == nil {
		c.Answer, c.Request = Compose(c.Verb, s.One[0].Parts)
	}
}

// Compose combines the measurements of parts. It returns the index of the request that decided.
func Compose(o wire.Op, parts []wire.Part) (d weir.Decision, request int) {
	if o == wire.OpTake && len(parts) == 1 {
		d, _ = enginekit.Compose(weir.OpTake, []*enginekit.Measure{&parts[0].Measure})
		return d, parts[0].Request
	}
	var space [4]*enginekit.Measure
	measures := space[:0]
	for i := range parts {
		parts[i].Measure.Request = parts[i].Request
		measures = append(measures, &parts[i].Measure)
	}
	d, binding := enginekit.Compose(o.Verb(), measures)
	request = parts[binding].Request
	ordinal := uint8(0)
	for ; binding > 0 && parts[binding-1].Request == request; binding-- {
		ordinal++
	}
	if d.LimitIndex += ordinal; !d.Allowed {
		d.RefusedBy = ordinal
	}
	return d, request
}
