package obey

import (
	"time"

	"github.com/weirflow/weir/httplimit/internal/announce"
)

// quota is one announced limit of a server.
type quota struct {
	name   string
	unit   announce.Unit
	limit  int64         // 0 if unknown
	window time.Duration // 0 if unknown

	remaining int64     // units left by the newest report; announce.Unknown if there is none
	reporter  Ticket    // the request whose answer brought it
	until     time.Time // when units come back; zero if unknown
	exact     bool      // the server has said when the next request fits
	shared    time.Time // until then, other clients seem to use the quota
	back      int64     // tokens of other requests than the reporter that were estimated and not used
}

// report takes what an answer says. The answer to an earlier request is older, even if it comes later.
func (q *quota) report(c *Config, s *State, t Ticket, now time.Time, a *announce.Quota) {
	q.unit = a.Unit
	if a.Limit > 0 {
		q.limit = a.Limit
	}
	if a.Window > 0 {
		q.window = a.Window
	}
	if a.Remaining < 0 || q.remaining >= 0 && q.knowsBetter(t, now, a) {
		return
	}
	q.remaining, q.reporter, q.until, q.back, q.exact = a.Remaining, t, time.Time{}, 0, a.Again > 0
	switch {
	case q.exact:
		q.remaining, q.until = 0, now.Add(c.bounded(a.Again, Never))
	case a.Reset >= 0:
		q.until = now.Add(c.bounded(a.Reset, Never))
	case q.window > 0:
		q.until = now.Add(c.bounded(q.window, Never))
	}
	if q.hasPolicy() && q.limit-a.Remaining > s.inFlight()+s.log.since(t.at.Add(-q.window)) {
		q.shared = now.Add(q.window)
	}
}

// knowsBetter reports whether the last report tells more than an answer that arrives now: its request was sent later. Of two that
// were in flight together the server may have counted either one first: then the one that names an instant used the last unit.
func (q *quota) knowsBetter(t Ticket, now time.Time, a *announce.Quota) bool {
	names := q.exact && now.Before(q.until)
	if together := t.answered < q.reporter.order; together && names != (a.Again > 0) {
		return names
	}
	return t.seq < q.reporter.seq
}

func (q *quota) hasPolicy() bool { return q.unit == announce.Requests && q.limit > 0 && q.window > 0 }

// comeBack takes the time of a Retry-After for the end of a quota that has too little for the need.
func (q *quota) comeBack(at time.Time, need Need) {
	if q.remaining >= 0 && q.remaining < max(q.amount(need), 1) {
		q.until = at
	}
}

// wait returns how long a request has to wait for the quota.
func (q *quota) wait(s *State, now time.Time, need Need) time.Duration {
	switch {
	case q.unit == announce.Concurrent:
		return unless(q.limit < 1 || s.open < q.limit)
	case q.remaining < 0:
		return q.ownWait(s, now)
	case q.room(s, need):
		return 0
	}
	wait := max(q.until.Sub(now), 0) // at once if it is unknown
	if q.hasPolicy() && !q.exact && !now.Before(q.shared) {
		wait = min(wait, q.ownWait(s, now))
	}
	if wait == 0 {
		return unless(s.inFlight() == 0) // one request asks for the new remainder
	}
	return wait
}

func unless(now bool) time.Duration {
	if now {
		return 0
	}
	return Never
}

// room reports whether the last remainder admits a request.
func (q *quota) room(s *State, need Need) bool {
	amount := q.amount(need)
	return amount == 0 || q.remaining-q.used(s) >= amount
}

// amount returns how much of the quota a request needs: 1 if that is unknown.
func (q *quota) amount(need Need) int64 {
	if i, ok := tokenIndex(q.unit); ok && need.Counted {
		return need.Tokens[i]
	}
	return 1
}

// used returns how much of the last remainder the client has used. All requests that were in flight when the reporter was
// sent, or sent later, may have used it. The remainder counts the reporter itself.
func (q *quota) used(s *State) int64 {
	if q.unit == announce.Requests {
		return int64(s.sent - q.reporter.answered - 1)
	}
	if i, ok := tokenIndex(q.unit); ok {
		return s.tokens.since(&q.reporter, i) - q.back
	}
	return 0
}

// ownWait returns how long a request has to wait if only this client uses the quota, and each unit comes back a window
// after its use. A server with a sliding log, a token bucket or a fixed window then has room.
func (q *quota) ownWait(s *State, now time.Time) time.Duration {
	if !q.hasPolicy() {
		return 0
	}
	tooMany := s.inFlight() + s.log.since(now.Add(-q.window)) - q.limit + 1
	if tooMany <= 0 {
		return 0
	}
	return s.log.leaves(now, q.window, tooMany)
}

// outdated reports whether a quota can be forgotten, because an answer after its end no longer reports it. It forgets
// the report of a quota that has a policy.
func (q *quota) outdated(s *State, t Ticket, now time.Time) bool {
	if q.remaining < 0 || t.seq <= q.reporter.seq || now.Before(q.until) || q.room(s, t.Need) {
		return false
	}
	q.remaining = announce.Unknown
	return !q.hasPolicy()
}

// matters reports whether forgetting the quota could change an answer.
func (q *quota) matters(s *State, now time.Time) bool {
	if q.unit == announce.Concurrent {
		return false // nothing is in flight
	}
	return now.Before(q.until) || q.hasPolicy() && s.log.since(now.Add(-q.window)) > 0
}

func (s *State) inFlight() int64 { return int64(s.sent - s.answered) }

// bounded returns a wait that the client believes.
func (c *Config) bounded(wait, most time.Duration) time.Duration {
	if c.MaxPause > 0 {
		most = min(most, c.MaxPause)
	}
	return min(wait, most)
}
