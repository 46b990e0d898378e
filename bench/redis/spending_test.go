package main

import (
	"testing"
	"time"

	"github.com/weirflow/weir/internal/redistest"
)

func TestSpendingIsThatOfEachDecision(t *testing.T) {
	server := redistest.Start(t)
	control, end := dialGoRedis(server.Addr)
	defer end()
	s := spending{control: control}
	for range 2 {
		s.of(t.Context(), func() reading {
			for began := time.Now(); time.Since(began) < 50*time.Millisecond; {
				control.Ping(t.Context())
			}
			return reading{decisions: 10}
		})
	}
	if s.failed != nil || s.decisions != 20 {
		t.Errorf("%d decisions, error %v; want 20", s.decisions, s.failed)
	}
	if all := s.total.client + s.total.redis; s.total.client <= 0 || s.total.redis <= 0 || s.each() != all/20 {
		t.Errorf("callers %v, Redis %v, each %v; want both above 0, and a twentieth of their sum", s.total.client, s.total.redis, s.each())
	}
}

func TestACrowdGrowsWithTheDistance(t *testing.T) {
	for trip, want := range map[time.Duration]int{100 * time.Microsecond: 4096, 10 * time.Millisecond: 4096, 20 * time.Millisecond: 8192} {
		if got := crowdAt(trip); got != want {
			t.Errorf("at %v: %d callers, want %d", trip, got, want)
		}
	}
}
