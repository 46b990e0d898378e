package redislimit_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

var updateFlag = flag.Bool("update", false, "write the kept values, if there are none")

// keptPath has the keys and values that this format of the engine wrote, by rule. It is never rewritten, because a change of
// what is stored needs a new format.
var keptPath = filepath.Join("testdata", "format1.json")

// keptAt is when the kept values were written, in ns: 20 s after a full minute.
const keptAt = 1_700_000_000_000_000_000

// keptRules are the rules of the kept values, one for each kind and form of value.
func keptRules(t *testing.T) []*weir.Rule {
	return append(everyValue(t),
		newRule(t, "identified", weir.TokenBucket{Rate: weir.PerHour(5)}),
		newRule(t, "day log", weir.SlidingLog{Rate: weir.PerDay(50)}),
		newRule(t, "day slots", weir.Concurrency{Slots: 50, Lease: 24 * time.Hour}))
}

// keptUse takes 1 and 2 units a second apart, and sets the clock to the second of them.
func keptUse(t *testing.T, engine weir.Engine, rule *weir.Rule, now *int64) {
	t.Helper()
	for i := range int64(2) {
		*now = keptAt + i*int64(time.Second)
		if d, err := keptTake(t.Context(), engine, rule, 1+i); err != nil || !d.Allowed {
			t.Fatalf("%s: Take: %+v, %v", rule, d, err)
		}
	}
}

// keptTake is a take of the kept values.
func keptTake(ctx context.Context, engine weir.Engine, rule *weir.Rule, cost int64) (weir.Decision, error) {
	take := weir.Call{Op: weir.OpTake}
	if rule.Limits()[0].String()[:4] == "conc" {
		take.Lease = 7
	}
	if _, redis := engine.(*redislimit.Engine); redis && rule.Name() == "identified" {
		take.Identity = "once"
	}
	return doCall(ctx, engine, take, rule.For("kept key", cost))
}

// doCall makes a call on requests.
func doCall(ctx context.Context, e weir.Engine, c weir.Call, requests ...weir.Request) (weir.Decision, error) {
	if c.Op == weir.OpRecord && requests[0].Cost < 0 { // all are
		c.Op, requests = weir.OpReturn, slices.Clone(requests)
		for i := range requests {
			requests[i].Cost *= -1
		}
	}
	c.Requests = requests
	a, err := e.Do(ctx, c)
	return a.Decision, err
}

// This test holds the stored format: the names of keys never change, and a change that reads or writes their values in
// another way needs a new format.
func TestTheKeptValuesAreReadAndWritten(t *testing.T) {
	client := dial(t, redistest.Start(t))
	var now int64
	clock := func() int64 { return now }
	engine := newEngine(t, client, redislimit.Options{Clock: clock})
	text, err := os.ReadFile(keptPath)
	if err != nil && !(*updateFlag && errors.Is(err, fs.ErrNotExist)) {
		t.Fatal(err)
	}
	file, written := map[string]map[string][]byte{}, map[string]map[string][]byte{}
	if err == nil {
		if err := json.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
	}
	for _, rule := range keptRules(t) {
		do(t, client, "FLUSHALL")
		keptUse(t, engine, rule, &now)
		values := map[string][]byte{}
		for _, key := range stored(t, client) {
			values[key] = []byte(get(t, client, key))
		}
		written[rule.Name()] = values
		if err == nil {
			same(t, rule, values, file[rule.Name()])
			do(t, client, "FLUSHALL")
			for key, value := range file[rule.Name()] {
				do(t, client, "SET", key, string(value))
			}
		}
		memory := weir.NewMemory(weir.MemoryOptions{Clock: clock})
		keptUse(t, memory, rule, &now)
		if rule.Name() == "identified" {
			answeredAgain(t, engine, rule)
		}
		now += int64(100 * time.Millisecond)
		want, wantErr := memory.Take(t.Context(), rule.For("kept key", 1))
		if got, err := engine.Take(t.Context(), rule.For("kept key", 1)); got != want || err != nil || wantErr != nil {
			t.Errorf("%s: Take after the kept values: got %+v and %v, want %+v (%v)", rule, got, err, want, wantErr)
		}
	}
	if err != nil {
		text, _ := json.MarshalIndent(written, "", "\t")
		if err := os.WriteFile(keptPath, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func same(t *testing.T, rule *weir.Rule, got, want map[string][]byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %d values, want %d", rule, len(got), len(want))
	}
	for key, value := range want {
		if string(got[key]) != string(value) {
			t.Errorf("%s: %s is written as %x, want %x", rule, key, got[key], value)
		}
	}
}

// answeredAgain repeats the kept decision with an identity.
func answeredAgain(t *testing.T, engine *redislimit.Engine, rule *weir.Rule) {
	t.Helper()
	if d, err := keptTake(t.Context(), engine, rule, 2); err != nil || !d.Allowed || d.Remaining != 2 {
		t.Errorf("the kept identity: got %+v and %v, want the first answer", d, err)
	}
}
