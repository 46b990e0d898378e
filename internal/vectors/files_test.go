package vectors

import (
	"strings"
	"testing"
	"testing/fstest"
)

const goodLine = `{"id":"x","tags":[],"params":{"algo":"gcra","rate":1,"period":1,"burst":1},"limit":1,"t0":0,"ops":[` + goodOp + `]}`
const goodOp = `{"t":0,"key":"a","cost":1,"verb":"allow","want":{"allowed":true,"remaining":0,"retry_after":0,"reset_after":9223372036854775807}}`

func TestVectorsFileIsReadExactly(t *testing.T) {
	file, err := parseFile("x.jsonl", []byte(goodLine+"\n\n"+strings.Replace(goodLine, `"x"`, `"y"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Scenarios) != 2 || file.Scenarios[1].ID != "y" {
		t.Fatalf("got %+v, want scenarios x and y", file.Scenarios)
	}
	if got := *file.Scenarios[0].Ops[0].Want.ResetAfter; got != 1<<63-1 {
		t.Errorf("reset_after: got %d, want 2^63-1: no digit may be lost", got)
	}
}

func TestVectorsOfDialectsAreHandedOn(t *testing.T) {
	for algorithm, line := range map[string]string{
		"nginx_limit_req": `{"id":"x","params":{"algo":"nginx_limit_req","rate":1,"unit":"s","burst":1,"delay":null},"ops":[]}`,
		"guava":           `{"id":"x","kind":"warmup","rate":0.5,"warmup_us":1,"cold_factor":1.5,"ops":[]}`,
	} {
		file, err := parseFile("x.jsonl", []byte(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if len(file.Dialects) != 1 || len(file.Scenarios) != 0 {
			t.Errorf("%s: got %d dialects and %d scenarios, want 1 and 0", line, len(file.Dialects), len(file.Scenarios))
			continue
		}
		if d := file.Dialects[0]; d.ID != "x" || d.Algorithm != algorithm || string(d.Line) != line {
			t.Errorf("%s: got %q of %q, want x of %q, and the line as it is", line, d.ID, d.Algorithm, algorithm)
		}
	}
}

func TestVectorsThatCannotBeCheckedAreErrors(t *testing.T) {
	change := func(old, now string) string { return strings.Replace(goodLine, old, now, 1) }
	for _, c := range []struct{ line, want string }{
		{"", "x.jsonl: holds no scenario"},
		{"{", "x.jsonl line 1: unexpected end of JSON input"},
		{change("gcra", "magic"), `x.jsonl line 1: x: unknown algorithm "magic"`},
		{change(`"algo":"gcra"`, `"algo":"composite"`), "x.jsonl line 1: x: composite without limits"},
		{change(`"algo":"gcra"`, `"algo":"composite","limits":[{"algo":"nginx_limit_req"}]`), `x.jsonl line 1: x: unknown algorithm "nginx_limit_req"`},
		{change(`"burst"`, `"bursts"`), `x.jsonl line 1: x: json: unknown field "bursts"`},
		{change(`"allowed"`, `"admitted"`), `x.jsonl line 1: x: json: unknown field "admitted"`},
		{change(`"rate":1`, `"rate":1.5`), "x.jsonl line 1: x: json: cannot unmarshal number 1.5 into Go struct field Params.params.rate of type int64"},
		{change(goodOp, ""), "x.jsonl line 1: x: has no operations"},
		{change(`"verb":"allow"`, `"verb":"beg"`), `x.jsonl line 1: x: op 0: unknown verb "beg"`},
		{change(`"allowed":true,`, ""), "x.jsonl line 1: x: op 0: want lacks allowed, remaining, retry_after or reset_after"},
		{change(`"verb":"allow"`, `"verb":"reserve"`), "x.jsonl line 1: x: op 0: want lacks delay"},
		{change(`"limit":1,`, ""), "x.jsonl line 1: x: op 0: want lacks limit"},
		{change(`"verb":"allow"`, `"verb":"limit"`), "x.jsonl line 1: x: op 0: limit lacks params"},
		{change(goodOp, `{"verb":"limit","params":{"algo":"magic"}}`), `x.jsonl line 1: x: op 0: unknown algorithm "magic"`},
		{change(goodOp, `{"verb":"limit","params":{"algo":"guava"}}`), `x.jsonl line 1: x: op 0: limit of the dialect guava`},
		{change(goodOp, `{"t":7,"verb":"limit","params":{"algo":"gcra"}}`), "x.jsonl line 1: x: op 0: limit has more than params"},
		{change(`"verb":"allow"`, `"verb":"allow","params":{"algo":"gcra"}`), "x.jsonl line 1: x: op 0: params without the verb limit"},
	} {
		_, err := parseFile("x.jsonl", []byte(c.line))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", c.line, err, c.want)
		}
	}
}

func TestVectorsFolderWithoutFilesIsAnError(t *testing.T) {
	_, err := readFiles(fstest.MapFS{"README.md": {Data: []byte("# Vectors")}})
	if want := "the folder has no .jsonl files"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestVectorsAreEmbeddedForEveryAlgorithm(t *testing.T) {
	t.Setenv(vectorsVariable, "")
	have := map[string]bool{}
	for _, file := range Files(t) {
		for _, s := range file.Scenarios {
			have[s.Params.Algo] = true
			for _, part := range s.Params.Limits {
				have[part.Algo] = true
			}
		}
		for _, d := range file.Dialects {
			have[d.Algorithm] = true
		}
	}
	for name := range limits {
		if !have[name] {
			t.Errorf("no embedded scenario of %s", name)
		}
	}
	for name := range dialects {
		if !have[name] {
			t.Errorf("no embedded scenario of %s, which is a dialect", name)
		}
	}
}
