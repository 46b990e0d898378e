package front

import (
	"sync"

	"github.com/weirflow/weir"
)

// Ask is one request on its way to a decision, and then its answer. Done ends its use.
type Ask[R, A any] struct {
	Requests []weir.Request // to the engine
	Sets     []*Set         // the rule of each of the requests
	At       []int          // the index in Options.Rules of each
	Lease    uint64         // that holds the slots; 0 without slots

	Outcome  Outcome
	Decision weir.Decision // Allowed if a dry run admits the request that it counts
	Missing  *Set          // the rule that needs a key, if the Outcome is KeyMissing
	Err      error         // why the engine did not decide, or nil
	Grant    *Grant[R, A]  // what is settled when the request ends; nil if nothing is
	settles  bool          // something when the request ends
	pool     *sync.Pool
}

// Decided reports whether the limits have decided: the Outcome is Admitted or Limited.
func (a *Ask[R, A]) Decided() bool { return a.Outcome == Admitted || a.Outcome == Limited }

// Binding returns the index of the request that the decision names.
func (a *Ask[R, A]) Binding() int {
	for i := range a.Requests {
		if a.Requests[i].Rule.Name() == a.Decision.Rule {
			return i
		}
	}
	return 0
}

// Done lets a later request use the Ask. It drops the keys, so that they can be collected. The Grant stays.
func (a *Ask[R, A]) Done() {
	clear(a.Requests)
	a.Requests, a.Sets, a.At, a.Lease, a.settles = a.Requests[:0], a.Sets[:0], a.At[:0], 0, false
	a.Decision, a.Missing, a.Err, a.Grant = weir.Decision{}, nil, nil, nil
	a.pool.Put(a)
}
