package simulate

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/replay"
	"github.com/weirflow/weir/internal/tape"
)

func compare(t *testing.T, traffic string, s Scenario, limits ...string) Comparison {
	t.Helper()
	p, err := ParsePattern(traffic)
	if err != nil {
		t.Fatal(err)
	}
	s.Seed = cmp.Or(s.Seed, 1)
	c, err := p.Compare(limits, s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAComparisonCountsEveryRequest(t *testing.T) {
	got := compare(t, "burst 200/s for 1s every 10s", Scenario{Length: time.Minute}, "token bucket 10/s burst 20", "leaky bucket 10/s queue 20", "unlimited", "deny all", "fixed window 100/m")
	if got.Requests != 1200 || got.Units != 1200 || got.Clients != 1 || got.Seconds != 60 || got.Most != [3]int64{200, 200, 1200} || got.Jain != 1 {
		t.Errorf("%+v, want 1200 requests of one client, up to 200 within a second", got)
	}
	want := []ComparisonReport{
		// 20 at once and 9 more in each second, the tenth only after it
		{Limit: "token bucket 10/s burst 20", Admitted: 174, Most: [3]int64{29, 29, 174}, Window: 1, InWindow: 29, Boundary: 2.9, Starved: 9.095, Jain: 1},
		{Limit: "leaky bucket 10/s queue 20", Admitted: 180, Most: [3]int64{10, 30, 180}, Window: 1, InWindow: 10, Boundary: 1, WaitP50: 1.33, WaitP99: 2, Queue: 20, Starved: 9.095, Jain: 1},
		{Limit: "unlimited", Admitted: 1200, Most: [3]int64{200, 200, 1200}, Jain: 1},
		{Limit: "deny all", Starved: 60, ShutOut: 1},
		{Limit: "fixed window 100/m", Admitted: 100, Most: [3]int64{100, 100, 100}, Window: 60, InWindow: 100, Boundary: 1, Starved: 59.5, Jain: 1},
	}
	for i, limit := range got.Limits {
		want[i].Refused, want[i].Attempts, want[i].Units = 1200-want[i].Admitted, 1200, want[i].Admitted
		limit.Series = Series{}
		if !reflect.DeepEqual(limit, want[i]) {
			t.Errorf("%+v\nwant %+v", limit, want[i])
		}
	}
}

func TestALargerLimitAdmitsNoLess(t *testing.T) {
	for _, form := range []string{"token bucket %d/s", "fixed window %d/s", "sliding window %d/s", "sliding log %d/s", "cycle %d/s"} {
		var limits []string
		step := 1
		if testing.Short() {
			step = 11
		}
		for n := 1; n <= 100; n += step {
			limits = append(limits, fmt.Sprintf(form, n))
		}
		c := compare(t, "poisson 20/s and burst 50/s for 1s every 7s", Scenario{Length: time.Minute}, limits...)
		for i := range c.Limits[1:] {
			if c.Limits[i+1].Admitted < c.Limits[i].Admitted {
				t.Errorf("%s admits %d, and %s %d", c.Limits[i].Limit, c.Limits[i].Admitted, c.Limits[i+1].Limit, c.Limits[i+1].Admitted)
			}
		}
		if largest := c.Limits[len(c.Limits)-1]; c.Most[0] > 100 || largest.Refused > 0 {
			t.Errorf("%s refuses %d of %d, want none: at most %d come within a second", largest.Limit, largest.Refused, c.Requests, c.Most[0])
		}
	}
}

// The shares of clients follow 1/k^skew, and costs follow their distribution, within five standard deviations.
func TestClientsAndCostsFollowTheirDistribution(t *testing.T) {
	draw := func(text string) (clients []float64, costs map[uint32]float64, mean float64) {
		p, err := ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		offers, n, err := p.offers(100*time.Second, 1)
		if err != nil {
			t.Fatal(err)
		}
		clients, costs = make([]float64, n), map[uint32]float64{}
		for _, o := range offers {
			clients[o.client] += 1 / float64(len(offers))
			costs[o.cost] += 1 / float64(len(offers))
			mean += float64(o.cost) / float64(len(offers))
		}
		return clients, costs, mean
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if spread := 5 * math.Sqrt(want*(1-want)/100_000); math.Abs(got-want) > spread {
			t.Errorf("%s: a share of %.4f, want %.4f within %.4f", what, got, want, spread)
		}
	}
	clients, _, _ := draw("constant 1000/s from 4 clients skew 1")
	for k, share := range clients {
		near(fmt.Sprintf("client %d", k+1), share, 1/float64(k+1)/(1+1.0/2+1.0/3+1.0/4))
	}
	clients, _, _ = draw("constant 1000/s from 4 clients")
	for k, share := range clients {
		near(fmt.Sprintf("client %d of equal ones", k+1), share, 0.25)
	}
	_, costs, _ := draw("constant 1000/s cost 3 to 6")
	for cost := uint32(3); cost <= 6; cost++ {
		near(fmt.Sprintf("cost %d of 3 to 6", cost), costs[cost], 0.25)
	}
	_, costs, mean := draw("constant 1000/s cost about 20")
	near("cost 1 of about 20", costs[1], 1.0/20)
	near("cost 2 of about 20", costs[2], 19.0/20/20)
	if math.Abs(mean-20) > 5*20/math.Sqrt(100_000) {
		t.Errorf("a mean cost of %.2f, want about 20", mean)
	}
	_, costs, _ = draw("constant 1000/s cost 1 or 50 at 2%")
	near("cost 50 at 2%", costs[50], 0.02)
	near("cost 1 at 98%", costs[1], 0.98)
	if _, costs, _ = draw("constant 1000/s cost 7"); costs[7] < 0.999 {
		t.Errorf("costs %v, want 7", costs)
	}
}

func TestRefusedClientsComeBackAsTheTextSays(t *testing.T) {
	for _, test := range []struct {
		text              string
		attempts, refused int64
		last              float64 // wait of the last
	}{
		// 10 at 1/s: nine are refused at 0, and eight of them a second later, and so on
		{"storm 10 at 0s retry obeying", 10 + 9 + 8 + 7 + 6 + 5 + 4 + 3 + 2 + 1, 0, 9},
		{"storm 10 at 0s retry every 500ms", 10 + 2*(9+8+7+6+5+4+3+2+1), 0, 9},
		{"storm 10 at 0s retry every 1s up to 2 times", 10 + 9 + 8, 7, 2},
		{"storm 10 at 0s", 10, 9, 0},
	} {
		c := compare(t, test.text, Scenario{Length: time.Minute}, "token bucket 1/s burst 1").Limits[0]
		if c.Attempts != test.attempts || c.Refused != test.refused || c.WaitP99 != test.last {
			t.Errorf("%s: %d attempts, %d refused, the last after %vs, want %d, %d, %vs", test.text, c.Attempts, c.Refused, c.WaitP99, test.attempts, test.refused, test.last)
		}
	}
	// With jitter, clients that obey come back over a second instead of all at once.
	most := func(text string) int64 {
		c := compare(t, text, Scenario{Length: 30 * time.Second}, "token bucket 1/s burst 1").Limits[0]
		return slices.Max(c.Series.Offered[20:])
	}
	if together, spread := most("storm 200 at 0s retry obeying"), most("storm 200 at 0s retry obeying jitter 10s"); together < 4*spread {
		t.Errorf("%d attempts within a step without jitter and %d with it, want a fourth at most", together, spread)
	}
}

// The independent reckoning of a line: caller i of a bucket of 10/s goes ahead at i/10 s, unless it would wait longer
// than its patience.
func TestWaitingCallersGoAheadInOrderOfArrival(t *testing.T) {
	s := Scenario{Length: 10 * time.Second, Wait: 2 * time.Second}
	for _, limit := range []string{"token bucket 10/s burst 1", "rate gate 1/100ms", "fixed window 1/100ms", "sliding log 1/100ms count denied", "token bucket 10/s burst 1 and fixed window 1000/1m"} {
		c := compare(t, "storm 50 at 1s", s, limit).Limits[0]
		if c.Admitted != 21 || c.Refused != 29 || c.WaitP99 != 2 || c.WaitP50 != 1 {
			t.Errorf("%s: %d admitted, %d refused, waits of %v and %v, want 21, 29, 1 and 2", limit, c.Admitted, c.Refused, c.WaitP50, c.WaitP99)
		}
		if c.Most[0] != 10 || c.Queue != 49 {
			t.Errorf("%s: %d within a second and %d in line, want 10 and 49", limit, c.Most[0], c.Queue)
		}
	}
	each := compare(t, "storm 50 at 1s", Scenario{Length: 10 * time.Second, Wait: 2 * time.Second, PerClient: true}, "token bucket 10/s burst 1").Limits[0]
	if each.Admitted != 50 || each.WaitP99 != 0 {
		t.Errorf("a limit for each client: %+v, want all admitted at once", each)
	}
}

func TestClientsDoNotInfluenceEachOtherUnderLimitsOfTheirOwn(t *testing.T) {
	const traffic = "constant 100/s and poisson 1/s"
	for _, limit := range []string{"token bucket 10/s burst 10", "warm up 10/s over 1s", "bursty 10/s over 1s", "nginx limit_req 10/s burst 10 nodelay", "10/s and fixed window 10000/1m"} {
		shared := compare(t, traffic, Scenario{Length: time.Minute}, limit).Limits[0]
		each := compare(t, traffic, Scenario{Length: time.Minute, PerClient: true}, limit).Limits[0]
		alone := compare(t, "constant 100/s", Scenario{Length: time.Minute, PerClient: true}, limit).Limits[0]
		second := compare(t, "poisson 1/h and poisson 1/s", Scenario{Length: time.Minute, PerClient: true}, limit).Limits[0]
		if each.Units != alone.Units+second.Units {
			t.Errorf("%s: %d units of both, and %d and %d alone", limit, each.Units, alone.Units, second.Units)
		}
		if shared.Jain > each.Jain {
			t.Errorf("%s: fairness %.3f of one limit and %.3f of one for each client", limit, shared.Jain, each.Jain)
		}
	}
}

// The shares of processes are together the limit: under even pressure they admit what one process admits, and less
// after a process is lost.
func TestProcessesShareALimit(t *testing.T) {
	for _, limit := range []string{
		"token bucket 12/s burst 8", "leaky bucket 12/s queue 7 nodelay 7", "fixed window 12/s", "sliding window 120/10s", "sliding log 12/s",
		"rate gate 12/s", "cycle 12/s", "bursty 12/s over 2s", "warm up 12/s over 1s", "nginx limit_req 12/s burst 4 nodelay", "12/s and fixed window 600/1m",
	} {
		const traffic = "constant 200/s"
		one := compare(t, traffic, Scenario{Length: time.Minute}, limit).Limits[0].Units
		four := compare(t, traffic, Scenario{Length: time.Minute, Processes: 4}, limit).Limits[0].Units
		lost := compare(t, traffic, Scenario{Length: time.Minute, Processes: 4, Lose: 20 * time.Second}, limit).Limits[0].Units
		if math.Abs(float64(four-one)) > 0.05*float64(one) {
			t.Errorf("%s: 4 processes admit %d, and one %d", limit, four, one)
		}
		if want := float64(four) * (1 - 0.25*2/3); math.Abs(float64(lost)-want) > 0.06*want {
			t.Errorf("%s: after a loss they admit %d, want about %.0f", limit, lost, want)
		}
	}
	p, err := ParsePattern("constant 1/s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Compare([]string{"2/s"}, Scenario{Length: time.Second, Processes: 3}); err == nil {
		t.Error("3 processes share 2 units, want an error")
	}
}

// The shares of a limit add up to it, whatever the number of processes.
func TestSharesAddUpToTheLimit(t *testing.T) {
	for _, text := range []string{"token bucket 100/s burst 17", "fixed window 100/m", "leaky bucket 5/s queue 16", "concurrency 23", "cycle 31/1s", "sliding log 19/1s"} {
		limit, err := weir.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= 16; n++ {
			units, rate := int64(0), 0.0
			for i := range n {
				part, err := share(limit, i, n)
				if err != nil {
					t.Fatal(err)
				}
				units += capacity(part)
				rate += perNano2(part)
			}
			if units != capacity(limit) || math.Abs(rate-perNano2(limit)) > 1e-15 {
				t.Errorf("%s in %d parts: %d units at %v, want %d at %v", text, n, units, rate, capacity(limit), perNano2(limit))
			}
		}
	}
}

func perNano2(limit weir.Limit) float64 {
	if r := weir.Describe(limit).Rate; r.Period > 0 {
		return tape.PerNano(r)
	}
	return 0
}

func TestALimitKeepsTheLatencyOfAServer(t *testing.T) {
	s := Scenario{Length: 30 * time.Second, Server: weir.PerSecond(100)}
	c := compare(t, "constant 150/s", s, "unlimited", "token bucket 90/s burst 10").Limits
	// Without a limit, request i comes at i/150 s and is done at (i+1)/100 s.
	if c[0].LatencyP50 < 7.4 || c[0].LatencyP50 > 7.6 || c[0].Queue < 1400 {
		t.Errorf("without a limit: %+v, want a latency of 7.5 s and a growing queue", c[0])
	}
	if c[1].LatencyP99 > 0.15 || c[1].Admitted < 2700 {
		t.Errorf("with a limit: %+v, want 15 waiting requests at most, and 2700 served", c[1])
	}
	alone := compare(t, "constant 10/s cost 5", s, "unlimited").Limits[0]
	if alone.LatencyP50 != 0.05 || alone.LatencyP99 != 0.05 {
		t.Errorf("latencies of %v and %v, want 5 units at 100/s", alone.LatencyP50, alone.LatencyP99)
	}
}

// What happens in a run adds up, whatever the traffic and the scenario, and equal seeds give equal results.
func TestARunAddsUpAndRepeats(t *testing.T) {
	traffics := []string{
		"poisson 50/s from 20 clients skew 1.2 cost 1 to 4 retry obeying jitter 1s and flash 1/s to 100/s at 5s for 2s",
		"diurnal 1/s to 60/s every 10s from 7 clients retry every 300ms jitter 100ms up to 3 times cost about 3",
		"storm 200 at 3s retry every 50ms and burst 100/s for 1s every 5s",
	}
	scenarios := []Scenario{
		{}, {PerClient: true}, {Wait: time.Second}, {Wait: 3 * time.Second, PerClient: true}, {Processes: 3}, {Processes: 2, Lose: 7 * time.Second, Wait: 2 * time.Second},
		{Server: weir.PerSecond(30)}, {Processes: 3, PerClient: true, Wait: time.Second, Lose: 9 * time.Second, Server: weir.PerSecond(10)},
	}
	limits := []string{"token bucket 10/s burst 20", "leaky bucket 10/s queue 20", "sliding log 20/2s count denied", "12/s and sliding window 300/1m", "warm up 10/s over 2s", "concurrency 6 lease 1s"}
	for i, s := range scenarios {
		for round, traffic := range []string{traffics[i%3], traffics[(i+1)%3]} {
			if testing.Short() && round > 0 {
				continue
			}
			s.Length, s.Seed = 12*time.Second, 3
			a, b := compare(t, traffic, s, limits...), compare(t, traffic, s, limits...)
			if !reflect.DeepEqual(a, b) {
				t.Errorf("%s, %+v: two runs differ", traffic, s)
			}
			for _, l := range a.Limits {
				offered, admitted := int64(0), int64(0)
				for i := range l.Series.Offered {
					offered += l.Series.Offered[i]
					admitted += l.Series.Admitted[i]
					if l.Series.Queued[i] < 0 {
						t.Fatalf("%s, %s, %+v: %d in the queue", l.Limit, traffic, s, l.Series.Queued[i])
					}
				}
				if l.Admitted+l.Refused != a.Requests || l.Attempts < a.Requests || offered < l.Units || admitted > l.Units || l.Jain < 0 || l.Jain > 1.0000001 {
					t.Errorf("%s, %s, %+v: %d admitted and %d refused of %d, %d units admitted of %d asked", l.Limit, traffic, s, l.Admitted, l.Refused, a.Requests, l.Units, offered)
				}
			}
		}
	}
}

func TestFairnessIsJainsIndex(t *testing.T) {
	for _, test := range []struct {
		amounts []int64
		want    float64
	}{{nil, 0}, {[]int64{0, 0}, 0}, {[]int64{5, 5, 5}, 1}, {[]int64{7, 0, 0, 0}, 0.25}, {[]int64{1, 3}, 0.8}} {
		if got := jain(test.amounts); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("%v: %v, want %v", test.amounts, got, test.want)
		}
	}
}

// A log in a simulation is decided like a replay of it, window for window.
func TestASimulatedLogIsDecidedLikeAReplay(t *testing.T) {
	p := mustPattern(t, "log access.log.gz")
	traffic := realLog(t, p, "access.log.gz")
	limits := []string{"fixed window 5/10s", "fixed window 7/13s", "sliding window 20/1h", "token bucket 1/s burst 10", "leaky bucket 1/m queue 3",
		"sliding log 5/10s count denied", "bursty 1/m over 3m", "nginx limit_req 6/m burst 5", "token bucket 1/s burst 10 and fixed window 50/1d"}
	var candidates []replay.Candidate
	for _, text := range limits {
		c, err := replay.ParseCandidate(text)
		if err != nil {
			t.Fatal(err)
		}
		candidates = append(candidates, c)
	}
	want, err := traffic.Replay(candidates, replay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Compare(limits, Scenario{Length: p.length(), PerClient: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range got.Limits {
		if l.Admitted != want.Limits[i].Admitted || l.Refused != want.Limits[i].Refused || l.Refused == 0 {
			t.Errorf("%s: %d admitted and %d refused, and a replay has %d and %d", l.Limit, l.Admitted, l.Refused, want.Limits[i].Admitted, want.Limits[i].Refused)
		}
	}
}

// realLog reads the log of testdata as that of the name, and returns what was read.
func realLog(t *testing.T, p Pattern, name string) *replay.Traffic {
	t.Helper()
	file, err := os.Open("testdata/access.log.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, _, err := p.ReadLog(name, "ip", file); err != nil {
		t.Fatal(err)
	}
	return p.streams[0].log.traffic
}

// Thinning keeps requests at random, and speed shortens the log.
func TestARecordedLogIsThinnedAndSpedUp(t *testing.T) {
	count := func(text string) (int, time.Duration) {
		p, err := ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		realLog(t, p, "a")
		offers, clients, err := p.offers(p.length(), 1)
		if err != nil || clients != 1753 {
			t.Fatalf("%d clients, %v", clients, err)
		}
		return len(offers), p.length()
	}
	whole, length := count("log a")
	thin, same := count("log a thin 20%")
	all, short := count("log a speed 60")
	if whole != 10_000 || all != whole || same != length || math.Abs(float64(thin)-2000) > 5*math.Sqrt(1600) {
		t.Errorf("%d lines, %d thinned, %d sped up; %v and %v", whole, thin, all, length, same)
	}
	if minute := length / 60; (short - minute).Abs() > time.Second {
		t.Errorf("60 times as fast a log of %v takes %v", length, short)
	}
}
