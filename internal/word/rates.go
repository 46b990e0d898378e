package word

import (
	"sync"
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
)

// rates numbers the rates that write the states of a column, in order of their first use.
type rates struct {
	mu      sync.Mutex
	numbers map[algorithm.Rate]int
	writers atomic.Pointer[[]algorithm.Pairer] // by number: a limit of the rate; earlier lists are the start of the newest
}

func newRates(first algorithm.Pairer) *rates {
	r := &rates{numbers: map[algorithm.Rate]int{algorithm.RateOf(first): 0}}
	r.writers.Store(&[]algorithm.Pairer{first})
	return r
}

// number returns the number of a limit's rate. ok is false for a new rate when there are too many.
func (r *rates) number(writer algorithm.Pairer) (number int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rate := algorithm.RateOf(writer)
	if number, ok := r.numbers[rate]; ok {
		return number, true
	}
	writers := *r.writers.Load()
	if number = len(writers); number == algorithm.MaxRates {
		return 0, false
	}
	writers = append(writers, writer) // in the space of the earlier list if it has any: its readers do not look there
	r.numbers[rate] = number
	r.writers.Store(&writers)
	return number, true
}

// writer returns a limit with the rate of a number that a state has.
func (r *rates) writer(number int) algorithm.Pairer { return (*r.writers.Load())[number] }
