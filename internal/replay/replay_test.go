package replay_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/replay"
)

const (
	bucketText = "token bucket 1/s burst 10"
	windowText = "sliding window 60/1m"
)

func TestTheRealLogIsReadWhole(t *testing.T) {
	report := replayOf(t, "ip", replay.Options{Top: 10}, realLog(t), bucketText, windowText)
	if report.Lines != 10_000 || report.Unparsed != 0 || report.Keys != 1753 {
		t.Errorf("got %d lines, %d unparsed, %d keys, want 10000, 0, 1753", report.Lines, report.Unparsed, report.Keys)
	}
	if got := report.First.String() + " " + report.Last.String(); got != "2015-05-17 10:05:00 +0000 UTC 2015-05-20 21:05:59 +0000 UTC" {
		t.Errorf("got traffic from and to %s", got)
	}
}

// TestReplayAgreesWithAnIndependentModel counts the real log again without code of the package: with a regular
// expression, a stable sort and the arithmetic of two limits.
func TestReplayAgreesWithAnIndependentModel(t *testing.T) {
	events := slowEvents(t, realLog(t))
	for _, c := range []struct {
		limit string
		model func() func(second int64) bool
	}{
		{bucketText, slowBucket},
		{"token bucket 7/m", slowBucketOf(7, 60, 7)},
		{"sliding window 5/1m", slowWindow(5, 60)},
		{"sliding window 60/1m", slowWindow(60, 60)},
		{"fixed window 3/1h", slowFixed(3, 3600)},
	} {
		want := slowReplay(events, c.limit, c.model)
		got := replayOf(t, "ip", replay.Options{Top: 1 << 20}, realLog(t), c.limit).Limits[0]
		if text(t, got) != text(t, want) {
			t.Errorf("%s: got %.400s\nwant %.400s", c.limit, text(t, got), text(t, want))
		}
		if want.Refused == 0 && c.limit != windowText {
			t.Errorf("%s: the model refuses nothing, which shows nothing", c.limit)
		}
	}
}

func TestTheOrderOfLinesNeverMatters(t *testing.T) {
	random := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	log := append(realLog(t), "\nnonsense\n{\"no\":1}\n"...)
	for _, key := range []string{"ip", "path", "ip,status"} {
		limits := []string{bucketText, windowText, "leaky bucket 1/s queue 5", "sliding log 5/10s gap 1s count denied", "token bucket 5/m and fixed window 9/h"}
		want := text(t, replayOf(t, key, replay.Options{Top: 50}, log, limits...))
		lines := strings.SplitAfter(strings.TrimSuffix(string(log), "\n")+"\n", "\n")
		lines = lines[:len(lines)-1]
		random.Shuffle(len(lines), func(i, k int) { lines[i], lines[k] = lines[k], lines[i] })
		got := text(t, replayOf(t, key, replay.Options{Top: 50}, []byte(strings.Join(lines, "")), limits...))
		if got != want {
			t.Errorf("key %s: got %.600s\nwant %.600s", key, got, want)
		}
	}
}

func TestSeveralLogsAreOneStream(t *testing.T) {
	log := realLog(t)
	key, err := replay.ParseKey("ip")
	if err != nil {
		t.Fatal(err)
	}
	candidate, err := replay.ParseCandidate(bucketText)
	if err != nil {
		t.Fatal(err)
	}
	half := bytes.LastIndexByte(log[:len(log)/2], '\n') + 1
	traffic := replay.NewTraffic(nil, key)
	for _, part := range [][]byte{log[half:], log[:half]} { // a replay in between changes nothing
		if err := traffic.ReadLog("part", bytes.NewReader(part)); err != nil {
			t.Fatal(err)
		}
		if _, err := traffic.Replay([]replay.Candidate{candidate}, replay.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := traffic.Replay([]replay.Candidate{candidate}, replay.Options{Top: 10})
	if err != nil {
		t.Fatal(err)
	}
	if want := replayOf(t, "ip", replay.Options{Top: 10}, log, bucketText); text(t, got) != text(t, want) {
		t.Errorf("two logs: got %s\nwant %s", text(t, got), text(t, want))
	}
}

func TestALeakyBucketAdmitsWithDelay(t *testing.T) {
	log := repeat(`{"ts":100,"who":"a"}`, 5)
	got := replayOf(t, "who", replay.Options{}, log, "leaky bucket 1/s queue 2").Limits[0]
	if got.Admitted != 3 || got.Refused != 2 || got.Delayed != 2 {
		t.Errorf("five at once: got %d admitted, %d refused, %d delayed, want 3, 2, 2", got.Admitted, got.Refused, got.Delayed)
	}
}

func TestLimitsJoinedByAndHoldTogether(t *testing.T) {
	log := append(repeat(`{"ts":100,"who":"a"}`, 4), repeat(`{"ts":110,"who":"a"}`, 4)...)
	report := replayOf(t, "who", replay.Options{}, log, "token bucket 1/s burst 3", "fixed window 5/h", "token bucket 1/s burst 3 and fixed window 5/h")
	var admitted []int64
	for _, l := range report.Limits {
		admitted = append(admitted, l.Admitted)
	}
	if want := []int64{6, 5, 5}; !slices.Equal(admitted, want) {
		t.Errorf("got %v admitted, want %v", admitted, want)
	}
}

func TestTheWorstComeFirst(t *testing.T) {
	log := slices.Concat(
		repeat(`{"ts":0,"who":"c"}`, 3), repeat(`{"ts":60,"who":"b"}`, 4), repeat(`{"ts":-0.5,"who":"a"}`, 3), repeat(`{"ts":60,"who":"idle"}`, 1),
		repeat(`{"ts":0,"who":"\ud83d\ude00"}`, 2))
	report := replayOf(t, "who", replay.Options{Top: 3}, log, "fixed window 1/h")
	want := `{"lines":13,"unparsed":0,"keys":5,"limits":[{"limit":"fixed window 1/h","admitted":5,"refused":8,"keys_refused":4,` +
		`"worst_keys":[{"key":"b","admitted":1,"refused":3},{"key":"a","admitted":1,"refused":2},{"key":"c","admitted":1,"refused":2}],` +
		`"worst_minutes":[{"minute":"1970-01-01T00:00:00Z","admitted":2,"refused":3},{"minute":"1970-01-01T00:01:00Z","admitted":2,"refused":3},` +
		`{"minute":"1969-12-31T23:59:00Z","admitted":1,"refused":2}]}],` +
		`"unshown":[{"limit":"fixed window 1/h","count":1,"window_seconds":3600,"log_seconds":61.5,"most":4,"reaches":234,"keys_beyond":5}],` +
		`"busiest":[{"seconds":1,"p50":3,"p90":4,"p99":4,"p999":4,"most":4},{"seconds":60,"p50":3,"p90":4,"p99":4,"p999":4,"most":4}]}`
	if got := text(t, report); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestNothingRefusedIsAnEmptyList(t *testing.T) {
	want := `{"lines":0,"unparsed":0,"keys":0,"limits":[{"limit":"fixed window 1/h","admitted":0,"refused":0,"keys_refused":0,"worst_keys":[],"worst_minutes":[]}]}`
	if got := text(t, replayOf(t, "ip", replay.Options{Top: 3}, nil, "fixed window 1/h")); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestProgressEndsAtTheLastDecision(t *testing.T) {
	var done, of int64
	options := replay.Options{Progress: func(d, o int64) { done, of = d, o }}
	replayOf(t, "ip", options, realLog(t), bucketText, windowText)
	if done != 20_000 || of != 20_000 {
		t.Errorf("got progress %d of %d, want 20000 of 20000", done, of)
	}
}

func TestBadCandidatesAreRefused(t *testing.T) {
	for limit, want := range map[string]string{
		"token bucket":                          `weir: "token bucket" ends where a rate such as 10/s, 5/10s or 1/1h30m should follow; did you mean "token bucket 10/s"?`,
		"leaky bucket 1/s and fixed window 1/s": `weir: leaky bucket 1/s: rule cannot combine it with other limits`,
	} {
		if c, err := replay.ParseCandidate(limit); err == nil || err.Error() != want {
			t.Errorf("ParseCandidate(%q): got %v, error %v, want %s", limit, c, err, want)
		}
	}
}

func repeat(line string, n int) []byte { return []byte(strings.Repeat(line+"\n", n)) }

// text returns a report as JSON, without the names and formats of its logs.
func text(t testing.TB, v any) string {
	t.Helper()
	if report, ok := v.(replay.Report); ok {
		report.Logs = nil
		v = report
	}
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}
