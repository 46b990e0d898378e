package otherwisetest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

var write = flag.Bool("write", false, "write the model's answers to vectors.jsonl")

func TestTheVectorsAreTheAnswersOfTheModel(t *testing.T) {
	var written bytes.Buffer
	met := map[string]int{}
	for i := range 30 {
		line, err := json.Marshal(draw(t, i, met))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&written, "%s\n", line)
	}
	for _, what := range []string{"paid by the first", "paid by link 1", "paid by link 2", "refused", "banned", "denied", "never", "two pay to one", "some times"} {
		if met[what] == 0 {
			t.Errorf("no answer is %s", what)
		}
	}
	if *write {
		if err := os.WriteFile("vectors.jsonl", written.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(vectors, written.Bytes()) {
		t.Error("vectors.jsonl differs from the answers of the model: go test ./internal/otherwisetest -write, and look at the difference")
	}
}

// draw returns random calls under the rules of a duel, and the model's answers.
func draw(t *testing.T, number int, met map[string]int) scenario {
	d := newDuel(t, rand.New(rand.NewPCG(58, uint64(number))), func(clock func() int64) weir.Engine {
		return weir.NewMemory(weir.MemoryOptions{Clock: clock})
	})
	d.bans, d.met = true, met
	s := scenario{ID: fmt.Sprint("otherwise-", number), T0: d.now.Load()}
	for _, l := range limits {
		var texts []string
		for _, limit := range l.limits {
			texts = append(texts, fmt.Sprint(limit))
		}
		s.Rules = append(s.Rules, l.name+"="+strings.Join(texts, " and "))
	}
	names := []string{"take", "take", "take", "peek", "upto"}
	for range 20 {
		o := op{T: d.now.Add(d.random.Int64N(3)*d.random.Int64N(4000)*int64(time.Millisecond)) - s.T0, Verb: names[d.random.IntN(len(names))]}
		if o.Verb == "upto" {
			o.Most = 1 + d.random.Int64N(4)
		}
		call := weir.Call{Op: verbs[o.Verb], Most: o.Most, Requests: d.requests()}
		for _, q := range call.Requests {
			var links []link
			for next := &q; next != nil; next = next.Otherwise {
				links = append(links, link{next.Rule.Name(), next.Key, next.Cost})
			}
			o.Requests = append(o.Requests, links)
		}
		a, err := d.model.make(call)
		if err != nil {
			t.Fatal(err)
		}
		d.count(call, a)
		o.Want = answerOf(a)
		s.Ops = append(s.Ops, o)
	}
	return s
}
