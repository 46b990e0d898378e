package playground

import (
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
)

// ask returns the answer to a question, which has one field.
func ask[T any](t *testing.T, question string) (ok T, failure Failure) {
	t.Helper()
	var a struct {
		OK    *T       `json:"ok"`
		Error *Failure `json:"error"`
	}
	answered := Answer([]byte(question), Host{})
	if err := json.Unmarshal(answered, &a); err != nil || (a.OK == nil) == (a.Error == nil) {
		t.Fatalf("%s: got %s (%v)", question, answered, err)
	}
	if a.Error != nil {
		return ok, *a.Error
	}
	return *a.OK, failure
}

func TestALimitIsPlayedAttemptByAttempt(t *testing.T) {
	played, failure := ask[Played](t, `{"do":"play","limits":["fixed window 2/1s","token bucket 1/s burst 2"],"traffic":"storm 3 at 500ms retry every 250ms","for":"2s","seed":1}`)
	if failure.Message != "" {
		t.Fatal(failure)
	}
	window, bucket := played.Limits[0], played.Limits[1]
	want := []Attempt{
		{At: 0.5, Cost: 1, Passed: true}, {At: 0.5, Client: 1, Cost: 1, Passed: true}, {At: 0.5, Client: 2, Cost: 1, Retry: 0.5},
		{At: 0.75, Client: 2, Cost: 1, Again: 1, Retry: 0.25}, {At: 1, Client: 2, Cost: 1, Again: 2, Passed: true},
	}
	if !slices.Equal(window.Attempts, want) {
		t.Errorf("the attempts are %+v, want %+v", window.Attempts, want)
	}
	at := func(c Course, seconds float64) int64 { return c.Level[int(seconds/c.Every)] }
	if window.Left || at(window, 0.25) != 0 || at(window, 0.8) != 2 || at(window, 1.2) != 1 || window.Window != 1 || window.Capacity != 2 {
		t.Errorf("the count of the window is %d, %d and %d of %d, want 0, 2 and 1 of 2", at(window, 0.25), at(window, 0.8), at(window, 1.2), window.Capacity)
	}
	if !bucket.Left || at(bucket, 0.25) != 2 || at(bucket, 0.6) != 0 || at(bucket, 1.9) != 0 {
		t.Errorf("the bucket has %d, %d and %d left, want 2, 0 and 0", at(bucket, 0.25), at(bucket, 0.6), at(bucket, 1.9))
	}
}

// The most in any second that is drawn is the figure of the comparison, also of a limit that delays.
func TestWhatIsAdmittedInAnySecondIsTheFigure(t *testing.T) {
	for _, limit := range []string{"fixed window 10/2s", "sliding log 10/2s", "leaky bucket 5/s queue 9", "token bucket 5/s burst 10", "unlimited"} {
		question, _ := json.Marshal(map[string]any{"do": "play", "limits": []string{limit}, "traffic": "burst 20/s for 1500ms every 5s cost 1 to 3", "for": "10s", "seed": 3})
		played, failure := ask[Played](t, string(question))
		if failure.Message != "" {
			t.Fatal(failure)
		}
		if got, want := slices.Max(played.Limits[0].Second), played.Comparison.Limits[0].Most[0]; got != want || got < 2 {
			t.Errorf("%s: %d are drawn in the fullest second, the comparison says %d", limit, got, want)
		}
	}
}

// Every limit of the hints can be played, and explained.
func TestEveryLimitIsPlayed(t *testing.T) {
	for _, limit := range slices.Concat(plain.RuleLimits, plain.OneSubjectLimits) {
		for _, each := range []bool{false, true} {
			question, _ := json.Marshal(map[string]any{"do": "play", "limits": []string{limit}, "traffic": "poisson 20/s from 3 clients retry obeying", "for": "5s", "each": each})
			played, failure := ask[Played](t, string(question))
			if failure.Message != "" || len(played.Limits) != 1 || len(played.Limits[0].Attempts) < 50 {
				t.Errorf("%s: got %+v and %d attempts", limit, failure, len(played.Limits))
			}
		}
		question, _ := json.Marshal(map[string]any{"do": "check", "text": limit})
		parsed, _ := weir.ParseLimit(limit)
		if checked, failure := ask[Checked](t, string(question)); failure.Message != "" || checked.Limits[0].Limit != parsed.String() || checked.Limits[0].Worst == "" {
			t.Errorf("%s: got %+v %+v", limit, failure, checked)
		}
	}
}

// A quota tells its next windows, several limits what holds of them together, and rules what Play does otherwise.
func TestWhatALimitAloneDoesNotSayIsNoted(t *testing.T) {
	checked, failure := ask[Checked](t, `{"do":"check","text":"quota 5/day in Europe/Paris and 2/s"}`)
	if failure.Message != "" || !strings.HasPrefix(checked.Limits[0].Windows, "The next begin on ") || !strings.HasSuffix(checked.Limits[0].Windows, "from "+runtime.Version()+".") ||
		checked.Limits[1].Windows != "" || !strings.HasSuffix(checked.Together, "The memory adds up.") {
		t.Errorf("got %+v and %+v", failure, checked)
	}
	checked, failure = ask[Checked](t, `{"do":"check","text":`+quoted("rules:\n  - {name: work, match: any, key: client, limit: 5/m, charge: after}\n")+`}`)
	if want := "Rule work is charged after the work: a cost that does not fit leaves a debt, and one cost counts at most 10 times the capacity. Play charges each request before it."; failure.Message != "" ||
		!slices.Equal(checked.Notes, []string{want}) {
		t.Errorf("got %+v and %q, want %q", failure, checked.Notes, want)
	}
}

func TestWhatCannotBePlayedIsSaid(t *testing.T) {
	for question, want := range map[string]string{
		`{`:            "the question is not readable",
		`{"do":"fly"}`: `no such question: "fly"`,
		`{"do":"check","text":"token bukket 1/s"}`:                                                `unexpected "bukket"`,
		`{"do":"check","text":""}`:                                                                "check: ",
		`{"do":"play","limits":[],"traffic":"constant 1/s","for":"1s"}`:                           "0 limits, want 1 or 2",
		`{"do":"play","limits":["1/s","1/s","1/s"],"traffic":"constant 1/s","for":"1s"}`:          "3 limits, want 1 or 2",
		`{"do":"play","limits":["1/s"],"traffic":"constant","for":"1s"}`:                          "traffic: the text ends",
		`{"do":"play","limits":["1/s"],"traffic":"log x","for":"1s"}`:                             "is not here",
		`{"do":"play","limits":["1/s"],"traffic":"constant 1/s","for":"9999h"}`:                   "is not from 1ms to 24h",
		`{"do":"play","limits":["1/s"],"traffic":"constant 1000000/s","for":"1h"}`:                "more than 10000000 requests",
		`{"do":"play","limits":["1/s and leaky bucket 1/s"],"traffic":"constant 1/s","for":"1s"}`: "check: ",
		`{"do":"check","text":"` + strings.Repeat("x", mostAsked) + `"}`:                          "want at most",
	} {
		_, failure := ask[any](t, question)
		if !strings.Contains(failure.Message, want) || len(failure.Hints) == 0 {
			t.Errorf("%.80s: got %+v, want %q and a hint", question, failure, want)
		}
	}
}

// FuzzAnswer asks anything: the answer is JSON with one field, and no panic is hidden in it.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"do":"check","text":"10/s"}`))
	f.Add([]byte(`{"do":"play","limits":["1/s"],"traffic":"storm 5 at 1s retry every 10ms","for":"2s"}`))
	f.Fuzz(func(t *testing.T, question []byte) {
		var a map[string]json.RawMessage
		if err := json.Unmarshal(Answer(question, Host{}), &a); err != nil || len(a) != 1 || strings.Contains(string(a["error"]), "this is a bug in weir") {
			t.Errorf("%q: got %s (%v)", question, a, err)
		}
	})
}
