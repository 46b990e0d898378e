package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/weirflow/weir"
)

// A URL is tried maxTries times. A site whose requests fail maxFailures times in a row is left alone for shutFor.
const (
	maxTries    = 4
	maxFailures = 8
	shutFor     = time.Hour
)

// The pauses of a site after failures in a row, unless it names one.
const (
	firstPause   = 2 * time.Second
	longestPause = time.Minute
)

// temporary reports whether a later request may have another status.
func temporary(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return status >= 500
}

// worked says that the site of a task answered.
func (f *frontier) worked(t *turn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t.site.failures = 0
}

// fail makes the home of a task pause. It returns why the task is not tried again, or nothing.
func (f *frontier) fail(t *turn, reason string) (refusal string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, now := f.homeOf(t), time.Now()
	defer f.reschedule(s)
	s.failures++
	t.fails++
	if s.failures >= maxFailures {
		s.shut, s.until = fmt.Sprintf("%s failed %d times in a row: %s", s.name, s.failures, shorten(reason)), now.Add(shutFor)
		return s.shut
	}
	s.pause(now.Add(min(firstPause<<(s.failures-1), longestPause)))
	if t.fails >= maxTries {
		return reason
	}
	return ""
}

// pauseSite keeps the site of a task from sending for the time that its server has asked for. It returns why the site is
// left alone instead, or nothing.
func (f *frontier) pauseSite(t *turn, pause time.Duration) (refusal string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, until := t.site, time.Now().Add(pause)
	defer f.reschedule(s)
	if pause > f.o.MaxPause {
		s.shut, s.until = fmt.Sprintf("%s asks for no request before %s; the longest pause that is obeyed is %v",
			s.name, until.UTC().Format(time.DateTime+" MST"), f.o.MaxPause), until
		return s.shut
	}
	s.pause(until)
	return ""
}

// asksForPause returns the pause that a server has asked for, if a request was not sent because of it.
func asksForPause(err error) time.Duration {
	var held *weir.WaitError
	if errors.As(err, &held) {
		return held.Need
	}
	return 0
}
