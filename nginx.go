package weir

import (
	"fmt"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/duration"
)

// NginxLimitReq is nginx's limit_req, bit for bit, to replace or predict that proxy. It counts thousandths of
// requests in whole milliseconds: 1 r/m is 16 thousandths a second, 4 % slower than written.
//
// Limiter, Keyed and replays hold it. Rules refuse it: use its LeakyBucket there, the same limit without the
// rounding. ParseNginx reads it from nginx's own directives.
type NginxLimitReq struct {
	Rate    Rate  // per second or per minute, up to 100,000,000
	Burst   int64 // excess requests that are admitted, 0 to 100,000,000
	Delay   int64 // excess requests that pass without a delay, 0 to 100,000,000
	NoDelay bool  // all excess requests pass without a delay; Delay must be 0
}

// maxNginxCount keeps every delay within a Duration.
const maxNginxCount = 100_000_000

// LeakyBucket returns the nearest limit without nginx's rounding.
func (l NginxLimitReq) LeakyBucket() LeakyBucket {
	delay := min(l.Delay, l.Burst)
	if l.NoDelay {
		delay = l.Burst
	}
	return LeakyBucket{Rate: l.Rate, Queue: l.Burst, NoDelay: delay}
}

func (l NginxLimitReq) validate() error {
	name := l.String()
	var period, delay error
	if l.Rate.Period != time.Second && l.Rate.Period != time.Minute {
		period = &LimitError{Limit: name, Field: "period", Code: CodeDialect, Reason: duration.Spoken(l.Rate.Period) + " is not a second or a minute"}
	}
	if l.NoDelay && l.Delay != 0 {
		delay = &LimitError{Limit: name, Field: "delay", Code: CodeDialect, Reason: fmt.Sprintf("%d is not 0, as nodelay requires", l.Delay)}
	}
	return joinErrors(l.Rate.check(name), period, delay,
		checkCount(name, "rate", l.Rate.Count, 1, maxNginxCount),
		checkCount(name, "burst", l.Burst, 0, maxNginxCount),
		checkCount(name, "delay", l.Delay, 0, maxNginxCount))
}

// String prints the limit as text: nginx limit_req 5/s burst 10 delay 3.
func (l NginxLimitReq) String() string {
	text := "nginx limit_req " + l.Rate.String() + countText(" burst ", l.Burst) + countText(" delay ", l.Delay)
	if l.NoDelay {
		text += " nodelay"
	}
	return text
}

// MarshalText returns the text of String.
func (l NginxLimitReq) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l NginxLimitReq) algorithm(*ticks) algorithm.Algorithm { return l.compiled() }

func (l NginxLimitReq) compiled() *algorithm.Nginx {
	delay := l.Delay
	if l.NoDelay {
		delay = -1
	}
	return algorithm.NewNginx(l.Rate.Count, l.Rate.Period == time.Minute, l.Burst, delay)
}

var nginxKind = kind{
	name:    "nginx limit_req",
	read:    rated((*scanner).nginxLimitReq),
	instead: func(l Limit) Limit { return l.(NginxLimitReq).LeakyBucket() },
}

func (NginxLimitReq) kind() *kind    { return &nginxKind }
func (NginxLimitReq) window() string { return "" }

func (l NginxLimitReq) describe() Description {
	d := l.LeakyBucket().describe()
	d.Worst++ // a stretch of 1000 ms touches 1001 whole milliseconds
	return d
}

func (l NginxLimitReq) share(s shares) Limit {
	return NginxLimitReq{Rate: s.fewer(l.Rate), Burst: s.part(l.Burst+1) - 1, Delay: s.split(l.Delay), NoDelay: l.NoDelay}
}

func (s *scanner) nginxLimitReq(r Rate) (_ Limit, err error) {
	l := NginxLimitReq{Rate: r}
	if s.Accept("burst") {
		if l.Burst, err = s.count(); err != nil {
			return nil, err
		}
	}
	if s.Accept("delay") {
		if l.Delay, err = s.count(); err != nil {
			return nil, err
		}
	}
	l.NoDelay = s.Accept("nodelay")
	return l, nil
}

// ParseNginx reads nginx's own directives as they appear in its configuration:
//
//	limit_req_zone $binary_remote_addr zone=one:10m rate=5r/s;
//	limit_req zone=one burst=10 delay=3;
//
// There must be one limit_req_zone, which has the rate, and there may be one limit_req of that zone. ParseNginx skips
// comments, the key, the size of the zone and sync. The error is a *SyntaxError that points at any other word, or a
// *LimitError for a value out of bounds.
func ParseNginx(directives string) (NginxLimitReq, error) {
	s := scannerOf(directives)
	read, want := s.Nginx()
	if want != "" {
		return NginxLimitReq{}, s.unexpected(want)
	}
	l := NginxLimitReq{Rate: PerSecond(read.Count), Burst: read.Burst, Delay: read.Delay, NoDelay: read.NoDelay}
	if read.PerMinute {
		l.Rate = PerMinute(read.Count)
	}
	if err := l.validate(); err != nil {
		return NginxLimitReq{}, err
	}
	return l, nil
}
