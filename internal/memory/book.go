package memory

import (
	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/compiled"
)

// Book takes a request for the earliest instant when all limits of its rule admit it, if that is at most longest away.
// The limits must be bookable, and the request checked. booked is for Withdraw.
func (e *Engine) Book(requests []compiled.Request, longest int64) (answer algorithm.Answer, booked []algorithm.Booked, err error) {
	var space callSpace
	reading := e.clock.Now()
	c := e.layOut(requests, reading, &space)
	now, err := e.lock(&c, reading)
	if err != nil {
		return algorithm.Answer{}, nil, err
	}
	defer e.unlock(&c, now)
	for i := range c.parts {
		booked = append(booked, algorithm.Booked{Before: plain(c.parts[i].State), Cost: c.parts[i].Cost})
	}
	answer = algorithm.BookAhead(c.parts, now, longest)
	for i := range booked {
		booked[i].After, booked[i].Due = plain(c.parts[i].State), algorithm.AddSaturating(now, answer.Delay)
	}
	e.store(&c, answer.Changed, reading)
	c.nameBinding(&answer)
	c.count(&answer)
	return answer, booked, nil
}

// plain returns a state without its entries, which change in place.
func plain(s algorithm.State) algorithm.State {
	if s.Log != nil {
		return algorithm.State{}
	}
	return s
}

// Withdraw gives n units of a booking back. The request is that of the booking.
func (e *Engine) Withdraw(requests []compiled.Request, booked []algorithm.Booked, n int64) error {
	var space callSpace
	reading := e.clock.Now()
	c := e.layOut(requests, reading, &space)
	now, err := e.lock(&c, reading)
	if err != nil {
		return err
	}
	defer e.unlock(&c, now)
	for i := range c.parts {
		p := &c.parts[i]
		p.State, p.Changed = algorithm.Withdraw(p.Algorithm, p.State, &booked[i], now, n), true
	}
	e.store(&c, true, reading)
	return nil
}
