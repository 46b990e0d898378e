package weir_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

func TestNginxLimitReqOutOfBoundsIsRefused(t *testing.T) {
	const above = 100_000_001
	for field, limit := range map[string]weir.NginxLimitReq{
		"period": {Rate: weir.PerHour(1)},
		"rate":   {Rate: weir.PerSecond(above)},
		"burst":  {Rate: weir.PerSecond(1), Burst: -1},
		"delay":  {Rate: weir.PerSecond(1), Burst: 2, Delay: 1, NoDelay: true},
	} {
		wantLimitError(t, limit, field)
		if limiter, err := weir.New(limit); limiter != nil || err == nil {
			t.Errorf("New(%+v): got %v and error %v, want only an error", limit, limiter, err)
		}
	}
	wantLimitError(t, weir.NginxLimitReq{Rate: weir.PerSecond(1), Burst: above}, "burst")
}

func TestNginxLimitReqDelaysNoLongerThanADuration(t *testing.T) {
	limiter, at := mustLimit(t, weir.NginxLimitReq{Rate: weir.PerMinute(1), Burst: 100_000_000}), time.Unix(0, 0)
	limiter.TakeAt(at, 1)
	if d := limiter.TakeAt(at, 1); !d.Allowed || d.Delay != 62500*time.Millisecond {
		t.Errorf("the second of 1 r/m: got %+v, want a delay of 62.5s, since it counts 16 thousandths a second", d)
	}
}

func TestNginxLimitReqIsALimitWithATextForm(t *testing.T) {
	for text, want := range map[string]weir.NginxLimitReq{
		"nginx limit_req 5/s":                  {Rate: weir.PerSecond(5)},
		"nginx limit_req 30/m burst 10":        {Rate: weir.PerMinute(30), Burst: 10},
		"nginx limit_req 5/s burst 10 delay 3": {Rate: weir.PerSecond(5), Burst: 10, Delay: 3},
		"nginx limit_req 5/s burst 10 nodelay": {Rate: weir.PerSecond(5), Burst: 10, NoDelay: true},
	} {
		if got, err := weir.ParseLimit(text); err != nil || got != want || got.String() != text {
			t.Errorf("ParseLimit(%q) = %v and error %v, want %v", text, got, err, want)
		}
	}
}

// Each key of a Keyed decides like a Limiter, which passes nginx's own vectors.
func TestKeyedDecidesAsNginx(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		limit := weir.NginxLimitReq{Rate: weir.PerSecond(1 + random.Int64N(2000)), Burst: random.Int64N(6)}
		if random.IntN(2) == 0 {
			limit.Rate.Period = time.Minute
		}
		limit.Delay = random.Int64N(limit.Burst + 1)
		one, keyed := mustLimit(t, limit), mustKeyed[string](t, limit)
		now := int64(1_700_000_000_000_000_000)
		gap := 3 * int64(limit.Rate.Period) / limit.Rate.Count
		for op := range 100 {
			now += random.Int64N(gap+1) - gap/10
			at := time.Unix(0, now)
			got, ofKey := one.TakeAt(at, 1), keyed.TakeAt(at, "a", 1)
			if got != ofKey {
				t.Fatalf("%s op %d: a Limiter decides %+v, and a key of a Keyed %+v", limit, op, got, ofKey)
			}
			if !got.Allowed && (one.PeekAt(at.Add(got.RetryAfter), 1).Allowed == one.PeekAt(at.Add(got.RetryAfter-1), 1).Allowed) {
				t.Fatalf("%s op %d: refused until %v, and that changes nothing", limit, op, got.RetryAfter)
			}
		}
	}
}

func TestRulesRefuseNginxAndNameTheNearestLimit(t *testing.T) {
	_, err := weir.NewRule("api", weir.NginxLimitReq{Rate: weir.PerSecond(5), Burst: 10, NoDelay: true})
	if !errors.Is(err, weir.ErrLimit) || !strings.Contains(err.Error(), "leaky bucket 5/s queue 10 nodelay 10") {
		t.Errorf("got error %v, want one that names leaky bucket 5/s queue 10 nodelay 10", err)
	}
}

func TestParseNginxReadsDirectives(t *testing.T) {
	for text, want := range map[string]string{
		"limit_req_zone $binary_remote_addr zone=one:10m rate=5r/s;":                               "nginx limit_req 5/s",
		"limit_req_zone $host$uri zone=a:1m rate=30r/m sync;\n  limit_req zone=a burst=5 nodelay;": "nginx limit_req 30/m burst 5 nodelay",
		"limit_req zone=a burst=12 delay=8; # why\nlimit_req_zone $a zone=a:1m rate=10r/s ;":       "nginx limit_req 10/s burst 12 delay 8",
	} {
		if got, err := weir.ParseNginx(text); err != nil || got.String() != want {
			t.Errorf("ParseNginx(%q) = %s and error %v, want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                                  `weir: "" ends where limit_req_zone with rate= should follow`,
		"limit_req zone=a;":                 `weir: "limit_req zone=a;" ends where limit_req_zone with rate= should follow`,
		"limit_conn a 5;":                   `unexpected "limit_conn" at byte 1, want limit_req_zone once, or limit_req once`,
		"limit_req_zone $a zone=a:1m":       `ends where ';' should follow`,
		"limit_req_zone $a zone=a:1m;":      `unexpected ";" at byte 28, want rate=, such as rate=5r/s`,
		"limit_req_zone $a rate=5/s;":       `unexpected "rate=5/s;" at byte 19, want rate=, such as rate=5r/s or rate=30r/m`,
		"limit_req_zone $a rate=xr/s;":      `want a whole number`,
		"limit_req_zone $a rate=5r/s b=1;":  `unexpected "b=1;" at byte 29, want a parameter of limit_req_zone`,
		"limit_req_zone $a rate=0r/s;":      `rate count 0 is not within`,
		"limit_req burst=1;limit_req x=1;":  `want limit_req_zone once, or limit_req once`,
		"limit_req_zone $a rate=1r/s;;":     `want limit_req_zone once`,
		"limit_req_zone $a rate=1r/s # ; x": `ends where ';' should follow`,
		"limit_req_zone $a zone=one:1m rate=1r/s; limit_req zone=two;": `unexpected "zone=two;" at byte 52, want zone=one`,
	} {
		if got, err := weir.ParseNginx(text); err == nil || !strings.Contains(err.Error(), want) || got != (weir.NginxLimitReq{}) {
			t.Errorf("ParseNginx(%q) = %v and error %v, want %s", text, got, err, want)
		}
	}
}

func FuzzParseNginx(f *testing.F) {
	f.Add("limit_req_zone $binary_remote_addr zone=one:10m rate=5r/s; limit_req zone=one burst=10 delay=3;")
	f.Fuzz(func(t *testing.T, text string) {
		limit, err := weir.ParseNginx(text)
		if err != nil {
			return
		}
		if again, err := weir.ParseLimit(limit.String()); err != nil || again != limit {
			t.Errorf("ParseNginx(%q) = %s, which reads as %v and error %v", text, limit, again, err)
		}
	})
}
