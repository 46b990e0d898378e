// Package obey decides when a client may send its next request to a server, by the limits that the server has announced
// so far. It is a state machine: the caller has the lock and passes the time.
//
// A [State] learns from answers. It sends a request only if the server is known to admit it, by the limits that it has
// announced:
//
//   - Until the first answer, and after a refusal, one request is in flight at a time.
//   - A remainder of n admits n requests, counted from the moment that the request which brought it was sent, because
//     the server may have counted all later ones, and all that were then in flight, after it.
//   - Tokens of language models work in the same way, by the estimates of the requests, until answers say what they used.
//   - When a remainder is used up, one request at a time asks for the new one: when the announced time has passed, or
//     when the client's own requests have left the window, if no other client seems to use the quota.
package obey

import (
	"math"
	"slices"
	"time"

	"github.com/weirflow/weir/httplimit/internal/announce"
)

// Config is common to the states of a client.
type Config struct {
	// MaxPause bounds the pauses and resets that a state believes; 0 is no bound.
	MaxPause time.Duration
	// Spread returns a random time below its argument, so that clients that were given the same instant do not come
	// back together.
	Spread func(most time.Duration) time.Duration
}

// State is what a client knows about one server. The zero value knows nothing.
type State struct {
	sure           bool // the last answer was no refusal
	sent, answered uint64
	tokens         tokenSums
	open           int64 // requests whose answers have not ended
	last           time.Time
	gap            time.Duration // that the last start asked for

	pause     time.Time // nothing is sent before
	refusals  int       // in a row
	refusedAt time.Time
	slow      slowdown
	quotas    []quota
	log       sendLog
}

// Reason says why a request waits.
type Reason string

// The reasons, in the order that they are named if several hold.
const (
	First Reason = "first answer" // one request at a time until an answer says more
	Pause Reason = "pause"        // the server has asked for a pause
	Quota Reason = "quota"        // the announced units are used up
	Slow  Reason = "slow"         // the server has refused without saying when to come back
	Delay Reason = "delay"        // the gap between two requests
)

// Verdict says how long a request waits. A Wait of 0 means that it may be sent now.
type Verdict struct {
	Wait   time.Duration // Never: until an answer arrives or ends
	Reason Reason
	Name   string // name of the quota
}

// Never is the wait that only an answer can end.
const Never = time.Duration(math.MaxInt64)

// Need is what a request asks for.
type Need struct {
	Gap     time.Duration // the least time since the start of the last request
	Counted bool          // whether the tokens are known
	Tokens  Tokens
}

// Ticket is a request that was sent.
type Ticket struct {
	seq      uint64
	answered uint64    // the answers so far when it was sent
	tokens   tokenSums // those so far when it was sent
	at       time.Time
	Need     Need
	order    uint64 // position of its answer among the answers; 0 without one
}

// Wait returns how long a request has to wait.
func (s *State) Wait(now time.Time, need Need) Verdict {
	v := Verdict{}
	if !s.sure && s.inFlight() > 0 {
		v.longer(Never, First, "")
	}
	v.longer(s.pause.Sub(now), Pause, "")
	for i := range s.quotas {
		q := &s.quotas[i]
		v.longer(q.wait(s, now, need), Quota, q.name)
	}
	v.longer(s.slow.wait(now, s.last), Slow, "")
	if need.Gap > 0 && !s.last.IsZero() {
		v.longer(min(s.last.Add(need.Gap).Sub(now), Never-1), Delay, "") // no answer shortens it
	}
	return v
}

func (v *Verdict) longer(wait time.Duration, reason Reason, name string) {
	if wait > v.Wait {
		*v = Verdict{wait, reason, name}
	}
}

// Start counts a request that is sent now. The caller has asked Wait at the same instant.
func (s *State) Start(now time.Time, need Need) Ticket {
	t := Ticket{answered: s.answered, tokens: s.tokens, at: now, Need: need}
	s.sent++
	t.seq = s.sent
	s.open++
	s.tokens.sent.add(&need.Tokens)
	s.last, s.gap = now, need.Gap
	s.slow.started(now)
	return t
}

// Kind is the kind of an answer.
type Kind uint8

const (
	Admitted Kind = iota
	Refused       // the server says that there were too many requests
	Busy          // the server cannot serve now; it may be about this request alone
	Failed        // there is no answer
)

// Answer learns from the answer to a request, and notes its order in the ticket.
func (s *State) Answer(c *Config, t *Ticket, now time.Time, kind Kind, a announce.Announcement) {
	t.order = s.answered + 1
	if kind != Failed {
		s.learn(c, *t, now, a.Quotas)
	}
	s.answered++
	s.tokens.answered.add(&t.Need.Tokens)
	s.log.add(now, s.longestWindow())
	switch kind {
	case Admitted:
		s.spent(c, t, now, a)
		if t.at.Before(s.refusedAt) {
			break // it was sent before the refusal, and says nothing about the time after
		}
		s.sure, s.refusals = true, 0
	case Refused:
		s.refused(c, t, now, a)
	case Busy:
		if a.RetryAfter > 0 {
			s.refused(c, t, now, a)
		}
		s.sure = s.sure || a.RetryAfter <= 0
	}
}

// End counts an answer whose body has ended, or a request that failed. It settles the tokens that were used; nil if that is
// unknown.
func (s *State) End(t Ticket, used *Tokens) {
	s.open--
	if used != nil {
		s.settle(t, used)
	}
}

// Idle reports whether a state is indistinguishable from a new one, but for the knowledge that the server answers.
func (s *State) Idle(now time.Time) bool {
	if s.inFlight() > 0 || s.open > 0 || now.Before(s.pause) || now.Before(s.last.Add(s.gap)) || s.slow.active(now) {
		return false
	}
	return !slices.ContainsFunc(s.quotas, func(q quota) bool { return q.matters(s, now) })
}

// learn takes the quotas of an answer.
func (s *State) learn(c *Config, t Ticket, now time.Time, announced []announce.Quota) {
	for i := range announced {
		s.quota(announced[i].Name).report(c, s, t, now, &announced[i])
	}
	if len(announced) == 0 && len(s.quotas) == 0 {
		return
	}
	s.quotas = slices.DeleteFunc(s.quotas, func(q quota) bool { return q.outdated(s, t, now) })
}

// quota returns the quota of a name. If there are too many, the oldest gives way.
func (s *State) quota(name string) *quota {
	for i := range s.quotas {
		if s.quotas[i].name == name {
			return &s.quotas[i]
		}
	}
	if len(s.quotas) >= maxQuotas {
		s.quotas = slices.Delete(s.quotas, 0, 1)
	}
	s.quotas = append(s.quotas, quota{name: name, remaining: announce.Unknown})
	return &s.quotas[len(s.quotas)-1]
}

const maxQuotas = 2 * announce.MaxQuotas

func (s *State) longestWindow() (longest time.Duration) {
	for i := range s.quotas {
		longest = max(longest, s.quotas[i].window)
	}
	return longest
}
