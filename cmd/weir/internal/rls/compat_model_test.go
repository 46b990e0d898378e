package rls

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weirflow/weir/cmd/weir/internal/envoyproxy"
	"github.com/weirflow/weir/internal/randtest"
)

// modelFile has a rule of each kind.
const modelFile = `
domain: shop
descriptors:
  - {key: plain, rate_limit: {unit: minute, requests_per_unit: 3}}
  - {key: plain, value: vip, rate_limit: {unit: hour, requests_per_unit: 5, name: vip}}
  - {key: replacing, rate_limit: {unit: day, requests_per_unit: 4, replaces: [{name: vip}]}}
  - {key: nothing, rate_limit: {unit: day, requests_per_unit: 0}}
  - {key: shadow, shadow_mode: true, rate_limit: {unit: hour, requests_per_unit: 2}}
  - {key: quota, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 2}}
  - {key: free, rate_limit: {unlimited: true}}
  - {key: "shared", value: "a*", share_threshold: true, rate_limit: {unit: minute, requests_per_unit: 4}}
  - key: outer
    descriptors:
      - {key: inner, rate_limit: {unit: second, requests_per_unit: 3}}
`

// modelLimit is the limit of a descriptor in the model.
type modelLimit struct {
	name, replaces               string
	count                        int64
	unit                         string
	shadow, quota, free, matched bool
	counter                      string // whose hits count together
}

// modelled returns the limit of a descriptor.
func modelled(words, own string) (l modelLimit) {
	count, unit, _ := strings.Cut(own, "/")
	key, value, _ := strings.Cut(words, "=")
	l = modelLimit{matched: true, counter: words}
	switch {
	case own != "":
		_, _ = fmt.Sscan(count, &l.count)
		l.unit, l.counter = unit, "call "+unit+" "+words
	case words == "plain=vip":
		l.name, l.count, l.unit = "vip", 5, "HOUR"
	case key == "plain":
		l.count, l.unit = 3, "MINUTE"
	case key == "replacing":
		l.count, l.unit, l.replaces = 4, "DAY", "vip"
	case key == "nothing":
		l.unit = "DAY"
	case key == "shadow":
		l.count, l.unit, l.shadow = 2, "HOUR", true
	case key == "quota":
		l.count, l.unit, l.quota = 2, "DAY", true
	case key == "free":
		l.free = true
	case key == "shared" && strings.HasPrefix(value, "a"):
		l.count, l.unit, l.counter = 4, "MINUTE", "shared=a*"
	case strings.Contains(words, ",inner="):
		l.count, l.unit = 3, "SECOND"
	default:
		l.matched = false
	}
	return l
}

// modelAsk is a descriptor of a call.
type modelAsk struct {
	words, own string
	hits       int64
	negative   bool
	limit      modelLimit
}

// model counts as envoyproxy/ratelimit documents, except that a call under STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT that is
// refused counts nothing.
type model struct {
	shadow, quota, stop bool
	counts              map[string]int64
}

// decide returns the answer as told has it.
func (m *model) decide(now int64, asks []modelAsk) string {
	var replaced []string
	for _, a := range asks {
		if a.limit.matched && a.limit.replaces != "" {
			replaced = append(replaced, a.limit.replaces)
		}
	}
	stopped := false
	for i := range asks {
		a := &asks[i]
		if slices.Contains(replaced, a.limit.name) {
			a.limit.matched = false
		}
		counts := a.limit.matched && !a.limit.free && !a.negative
		stopped = stopped || m.stop && counts && m.counts[a.counter(now)]+a.hits > a.limit.count
	}
	text, failed, quotas, overQuotas := "", false, 0, 0
	for _, a := range asks {
		status, over := m.status(a, now, stopped)
		text += " " + status
		if a.limit.free {
			continue
		}
		quota := m.quota || a.limit.matched && a.limit.quota
		failed = failed || over && !quota
		if quota {
			quotas++
		}
		if over && quota {
			overQuotas++
		}
	}
	if (failed || quotas > 0 && quotas == overQuotas) && !m.shadow {
		return "OVER_LIMIT" + text
	}
	return "OK" + text
}

// status counts a descriptor, unless the call is stopped.
func (m *model) status(a modelAsk, now int64, stopped bool) (text string, over bool) {
	switch {
	case a.limit.free:
		return "OK/4294967295/0/UNKNOWN/0s", false
	case !a.limit.matched:
		return "OK/0/0/UNKNOWN/0s", false
	}
	at := a.counter(now)
	before := m.counts[at]
	after := before + a.hits
	switch {
	case a.negative:
		after = max(0, before-a.hits)
		m.counts[at] = after
	case !stopped || a.limit.count == 0:
		m.counts[at] = after
	case after <= a.limit.count: // another descriptor stops it
		after = before
	}
	over = after > a.limit.count && !a.negative
	left := max(0, a.limit.count-after)
	code := "OK"
	if over && !a.limit.shadow {
		code = "OVER_LIMIT"
	}
	period := periodOf(a.limit.unit)
	return fmt.Sprintf("%s/%d/%d/%s/%ds", code, left, a.limit.count, a.limit.unit, period-now%period), code != "OK"
}

func (a *modelAsk) counter(now int64) string {
	return fmt.Sprint(a.limit.counter, " ", now/periodOf(a.limit.unit))
}

func periodOf(unit string) int64 {
	u := service.RateLimitResponse_RateLimit_Unit(service.RateLimitResponse_RateLimit_Unit_value[unit])
	return max(1, int64(envoyproxy.Period(u)/time.Second))
}

// draw draws the descriptors of a call. Under stop no two of them share a counter.
func (m *model) draw(r *rand.Rand) (asks []modelAsk) {
	seen := map[string]bool{}
	for range 1 + r.IntN(4) {
		a := modelAsk{hits: []int64{0, 1, 1, 1, 2, 3, 7, 5_000_000_000}[r.IntN(8)], negative: r.IntN(8) == 0}
		a.words = []string{"plain=x", "plain=y", "plain=vip", "replacing=x", "nothing=x", "shadow=x", "quota=x", "quota=y", "free=x",
			"shared=a1", "shared=a2", "shared=b", "outer=x,inner=y", "outer=x", "unknown=x", "-", "=x"}[r.IntN(17)]
		if r.IntN(4) == 0 {
			a.own = fmt.Sprintf("%d/%s", r.IntN(4), []string{"SECOND", "MINUTE", "HOUR", "DAY"}[r.IntN(4)])
		}
		if a.limit = modelled(a.words, a.own); m.stop && seen[a.limit.counter] {
			continue
		}
		seen[a.limit.counter] = true
		asks = append(asks, a)
	}
	return asks
}

// callOfModel returns the call as a case of testdata/compat.txt has it.
func callOfModel(asks []modelAsk) string {
	line := "shop"
	for _, a := range asks {
		line += fmt.Sprintf(" | %s hits %d", a.words, a.hits)
		if a.negative {
			line += " negative"
		}
		if a.own != "" {
			line += " limit " + a.own
		}
	}
	return line
}

func TestRandomCallsAreDecidedAsEnvoyproxyDocuments(t *testing.T) {
	for seed := range randtest.Seeds(t, 200, 200) {
		r := rand.New(rand.NewPCG(seed, 39))
		flag := func() bool { return r.IntN(3) == 0 }
		m := &model{flag(), flag(), r.IntN(2) == 0, map[string]int64{}}
		environment := map[string]string{
			"SHADOW_MODE": fmt.Sprint(m.shadow), "QUOTA_MODE": fmt.Sprint(m.quota), "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT": fmt.Sprint(m.stop),
		}
		s, now := newCompat(t, modelFile, environment)
		history := ""
		for range 40 {
			*now = now.Add(time.Duration([]int{0, 0, 0, 1, 20, 1800}[r.IntN(6)]) * time.Second)
			asks := m.draw(r)
			line := callOfModel(asks)
			history += fmt.Sprintf("%v %s\n", now.Unix(), line)
			answer, err := s.ShouldRateLimit(t.Context(), asked(t, compatCall(t, line)))
			want := m.decide(now.Unix(), asks)
			if got := told(answer, err, want); got != want {
				t.Fatalf("seed %d, %v:\n%sgot  %s\nwant %s", seed, slices.Sorted(maps.Keys(environment)), history, got, want)
			}
		}
	}
}
