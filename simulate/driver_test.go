package simulate

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// classic are limits of 10 per second with a burst of 10.
func classic(t *testing.T) (subjects []Subject) {
	t.Helper()
	for _, text := range []string{"token bucket 10/s burst 10", "leaky bucket 10/s queue 9", "fixed window 10/s", "sliding window 10/s", "sliding log 10/s",
		"sliding log 10/s count denied", "rate gate 10/s", "cycle 10/s", "bursty 10/s over 1s", "warm up 10/s over 1s", "nginx limit_req 10/s burst 9 nodelay"} {
		limit, err := weir.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		s, err := NewSubject(limit)
		if err != nil {
			t.Fatal(err)
		}
		subjects = append(subjects, s)
	}
	return subjects
}

func find(t *testing.T, subjects []Subject, name string) Subject {
	t.Helper()
	for _, s := range subjects {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no subject %q", name)
	return Subject{}
}

// The bound holds at every instant of every phase, not only at its end.
func TestNoLimitAdmitsMoreThanItsCapacityAndRate(t *testing.T) {
	d := ClassicDriver()
	for _, s := range classic(t) {
		capacity := 10.0
		if strings.HasPrefix(s.Name, "fixed window") {
			capacity = 20
		}
		for _, p := range d.Phases {
			r, err := d.drive(s, p)
			if err != nil {
				t.Fatal(err)
			}
			for i, at := range r.starts {
				if most := capacity + 10*at.Seconds(); float64(i+1) > most {
					t.Fatalf("%s, %d/s: %d went ahead within %v, want %.1f at most", s.Name, p.PerSecond, i+1, at, most)
				}
			}
		}
	}
}

// The rate of the long run is that of the requests which the longest phase has more than the one before it.
func TestInTheLongRunALimitAdmitsItsRate(t *testing.T) {
	d := ClassicDriver()
	for _, s := range classic(t) {
		want := 10.0
		switch s.Name {
		case "sliding window 10/s":
			want = 9
		case "sliding log 10/s count denied":
			continue // TestALogThatCountsRefusedAttemptsNeverEnds
		}
		shorter, longer := d.Phases[len(d.Phases)-2], d.Phases[len(d.Phases)-1]
		a, err := d.drive(s, shorter)
		b, err2 := d.drive(s, longer)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		got := float64(longer.Requests-shorter.Requests) / (b.end - a.end).Seconds()
		if math.Abs(got-want) > want/100 || !a.ended || !b.ended {
			t.Errorf("%s: %.3f/s in the long run (ended %v, %v), want %v/s within 1 %%", s.Name, got, a.ended, b.ended, want)
		}
	}
}

func TestALogThatCountsRefusedAttemptsNeverEnds(t *testing.T) {
	reports, err := ClassicDriver().Run(find(t, classic(t), "sliding log 10/s count denied"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range reports {
		want := r.Offered <= 10
		if r.Ended != want {
			t.Errorf("%d/s: ended %v, want %v", r.Offered, r.Ended, want)
		}
		if !want && (r.Admitted != 10 || r.Seconds < 60) {
			t.Errorf("%d/s: %d admitted in %.2f s, want 10 and a minute of retries", r.Offered, r.Admitted, r.Seconds)
		}
	}
}

func TestBelowItsRateALimitAdmitsEveryRequestAtOnce(t *testing.T) {
	d := ClassicDriver()
	for _, s := range classic(t) {
		if s.Name == "warm up 10/s over 1s" { // cold, it admits a third of its rate
			continue
		}
		for _, p := range d.Phases[:3] {
			r, err := d.drive(s, p)
			if err != nil {
				t.Fatal(err)
			}
			for i, at := range r.starts {
				if at != p.at(int64(i)) {
					t.Fatalf("%s, %d/s: request %d went ahead at %v, want %v", s.Name, p.PerSecond, i, at, p.at(int64(i)))
				}
			}
		}
	}
}

func TestTheSameRunTwiceGivesTheSameReports(t *testing.T) {
	subjects := classic(t)
	a, err := ClassicDriver().Run(subjects...)
	b, err2 := ClassicDriver().Run(subjects...)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if len(a) != len(subjects)*8 {
		t.Fatalf("%d reports of %d subjects in 8 phases", len(a), len(subjects))
	}
	for i := range a {
		if a[i] != b[i] {
			t.Errorf("%+v, then %+v", a[i], b[i])
		}
	}
}

func TestADriverThatCouldNotEndIsRefused(t *testing.T) {
	phases := []Phase{{1, 1}}
	for _, d := range []Driver{
		{}, {Phases: phases, Retry: 1}, {Phases: phases, Patience: 1}, {Phases: phases, Retry: -1, Patience: 1},
		{Retry: 1, Patience: 1}, {Phases: []Phase{{0, 1}}, Retry: 1, Patience: 1}, {Phases: []Phase{{1, 0}}, Retry: 1, Patience: 1},
		{Phases: []Phase{{maxOffered + 1, 1}}, Retry: 1, Patience: 1},
	} {
		if _, err := d.Run(); err == nil || !strings.HasPrefix(err.Error(), "simulate: drive: ") {
			t.Errorf("%+v: %v, want an error", d, err)
		}
	}
	if _, err := NewSubject(weir.TokenBucket{}); !errors.Is(err, weir.ErrLimit) {
		t.Errorf("a wrong limit: %v, want a LimitError", err)
	}
}

// A limiter of weir's that is asked through a function has the figures of the same limit as a subject.
func TestALimiterOfOnesOwnIsDrivenLikeALimit(t *testing.T) {
	for _, limit := range []weir.Limit{weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 10}, weir.SlidingLog{Rate: weir.PerSecond(10)}} {
		subject, err := NewSubject(limit)
		if err != nil {
			t.Fatal(err)
		}
		begun := 0
		own := SubjectFunc(subject.Name, func(start time.Time) func(time.Time) bool {
			begun++
			limiter, err := weir.New(limit)
			if err != nil {
				t.Fatal(err)
			}
			last := start
			return func(now time.Time) bool {
				if now.Before(last) {
					t.Fatalf("asked at %v after %v", now, last)
				}
				last = now
				return limiter.AllowAt(now, 1)
			}
		})
		want, err := ClassicDriver().Run(subject)
		got, err2 := ClassicDriver().Run(own)
		if err := errors.Join(err, err2); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: got %+v and error %v, want %+v", limit, got, err, want)
		}
		if begun != len(want) {
			t.Errorf("%v: begun %d times in %d phases", limit, begun, len(want))
		}
	}
}

func TestALimiterOfOnesOwnWithoutAFunctionIsRefused(t *testing.T) {
	for _, s := range []Subject{
		SubjectFunc("own", nil),
		SubjectFunc("own", func(time.Time) func(time.Time) bool { return nil }),
	} {
		if _, err := ClassicDriver().Run(s); err == nil || !strings.Contains(err.Error(), `subject "own"`) {
			t.Errorf("got error %v, want one that names the subject", err)
		}
	}
}
