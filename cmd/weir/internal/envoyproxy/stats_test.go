package envoyproxy

import (
	"strings"
	"testing"
)

func TestNamesOfStatisticsAreBounded(t *testing.T) {
	s, long := &Stats{}, strings.Repeat("v", maxName+1)
	s.Of("shop.a_" + long).Total.Add(2)
	s.Of("shop.b_" + long).Total.Add(3)
	var b strings.Builder
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.Contains(text, long) || !strings.Contains(text, "\nratelimit.service.rate_limit.other.total_hits: 5\n") {
		t.Errorf("got %d bytes, want the hits of long names under one: %.500s", len(text), text)
	}
}
