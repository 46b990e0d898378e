package memory

import (
	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/rule"
)

// PeekAfter returns the answer that Take would give right after taken units of each request's key were taken. It writes
// nothing.
func (e *Engine) PeekAfter(requests []rule.Request, taken int64) (algorithm.Answer, error) {
	var space callSpace
	c := e.layOut(requests, &space)
	now, err := e.lock(&c, e.clock.Now())
	if err != nil {
		return algorithm.Answer{}, err
	}
	defer e.unlock(&c, now)
	for i := range c.parts {
		if p := &c.parts[i]; taken > 0 {
			p.State = algorithm.TakeFor(p.Algorithm, p.State.Clone(), now, taken, p.Lease)
		}
	}
	answer := algorithm.Peek(c.parts, now)
	c.nameBinding(&answer)
	return answer, nil
}
