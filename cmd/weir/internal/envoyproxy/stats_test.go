package envoyproxy

import (
	"fmt"
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

func TestDomainsWithoutRulesLeaveRoomForRules(t *testing.T) {
	s := &Stats{}
	for i := range 3 * maxDomains {
		s.NotFound(fmt.Sprint("domain", i))
	}
	s.NotFound("domain1")
	if named, one, rest := len(s.rules), s.Of("domain1").NotFound.Load(), s.Of("other").NotFound.Load(); named != maxDomains+1 || one != 2 || rest != 2*maxDomains {
		t.Errorf("got %d names, %d calls of a domain and %d of others, want %d, 2 and %d", named, one, rest, maxDomains+1, 2*maxDomains)
	}
}
