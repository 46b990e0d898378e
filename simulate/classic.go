package simulate

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// classicRate is the rate, per second, and the burst of every subject of `weir simulate`.
const classicRate = 10

// ClassicSubjects returns every limit that has a rate, at 10 requests per second with a burst of 10.
func ClassicSubjects() ([]Subject, error) {
	rate := weir.PerSecond(classicRate)
	limits := []weir.Limit{
		weir.TokenBucket{Rate: rate, Burst: classicRate},
		weir.LeakyBucket{Rate: rate, Queue: classicRate - 1},
		weir.FixedWindow{Rate: rate},
		weir.SlidingWindow{Rate: rate},
		weir.SlidingLog{Rate: rate},
		weir.SlidingLog{Rate: rate, CountDenied: true},
		weir.RateGate{Rate: rate},
		weir.Cycle{Rate: rate},
		weir.Bursty{Rate: rate, Over: time.Second},
		weir.WarmUp{Rate: rate, Over: time.Second},
		weir.NginxLimitReq{Rate: rate, Burst: classicRate - 1, NoDelay: true},
	}
	subjects := make([]Subject, len(limits))
	for i, limit := range limits {
		s, err := NewSubject(limit)
		if err != nil {
			return nil, err
		}
		s.Note = classicNote(limit)
		subjects[i] = s
	}
	return subjects, nil
}

// classicNote explains the figures that differ from a token bucket's.
func classicNote(limit weir.Limit) string {
	switch limit := limit.(type) {
	case weir.LeakyBucket:
		return "A request counts when it goes ahead, after its delay. So nothing goes ahead in a burst."
	case weir.FixedWindow, weir.Cycle:
		return "Up to twice the capacity can go ahead around a boundary."
	case weir.SlidingWindow:
		return fmt.Sprintf("Under steady pressure it admits %d/s, not %d/s. The previous count fades evenly, so the last unit of a window fits only where the next window begins, and counts there.",
			classicRate-1, classicRate)
	case weir.SlidingLog:
		if limit.CountDenied {
			return "Refused attempts count, so a caller that retries faster than the limit is never admitted again."
		}
	case weir.Bursty, weir.WarmUp:
		return "A new limiter has no burst. It stores permits only while it is idle."
	}
	return ""
}
