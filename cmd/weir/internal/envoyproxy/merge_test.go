package envoyproxy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/internal/randtest"
)

func parsed(text string) (*Config, error) {
	c, err := Parser(Settings{}, &Stats{})(rules.Options{}, rules.File{Name: "f.yaml", Content: []byte(text)})
	if err != nil {
		return nil, err
	}
	return c.Foreign.(*Config), nil
}

// limitsOf returns the limits of a file, as far as they decide.
func limitsOf(t *testing.T, text string) string {
	t.Helper()
	c, err := parsed(text)
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	all := ""
	for _, l := range c.Limits {
		all += fmt.Sprintf("%s %v name %q replaces %q unlimited %v shadow %v quota %v\n", l.path, l.Shown, l.Name, l.Replaces, l.Unlimited, l.Shadow, l.Quota)
	}
	return all
}

func TestMergeKeysBringFields(t *testing.T) {
	const head = "domain: d\ndescriptors:\n- key: a\n  rate_limit: &lim {unit: hour, requests_per_unit: 2, name: n}\n"
	want := limitsOf(t, head+"- {key: b, rate_limit: {unit: hour, requests_per_unit: 1, name: n}}\n")
	for _, merged := range []string{
		"- key: b\n  rate_limit: {<<: *lim, requests_per_unit: 1}\n",
		"- key: b\n  rate_limit:\n    <<: [{requests_per_unit: 1}, *lim]\n",
		"- key: b\n  rate_limit: {<<: {<<: *lim, requests_per_unit: 1}}\n",
		"- key: b\n  <<: {rate_limit: {<<: *lim, requests_per_unit: 1}}\n",
		"- <<: [{key: z}, {rate_limit: {unit: hour, requests_per_unit: 1, name: n}, key: y}]\n  key: b\n",
	} {
		if got := limitsOf(t, head+merged); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", merged, got, want)
		}
	}
}

func TestMergesThatProgramsReadDifferentlyAreErrors(t *testing.T) {
	const head = "domain: d\ndescriptors:\n- key: a\n  rate_limit: &lim {unit: hour, requests_per_unit: 2}\n- key: b\n"
	for merged, want := range map[string]string{
		"  rate_limit:\n    requests_per_unit: 1\n    <<: *lim\n":                 `f.yaml:8:5: brings "requests_per_unit", which stands above in line 7, and programs differ on which of them counts: write << first`,
		"  <<: {rate_limit: *lim}\n  rate_limit: {unit: day}\n":                   `f.yaml:7:3: "rate_limit" is merged from line 6, too, and programs differ on which of its fields count: write all of them here, without the merge`,
		"  rate_limit: {<<: *lim, <<: {unit: day}}\n":                             "f.yaml:6:26: << is given twice; write one, with a list of values",
		"  rate_limit: {<<: 5}\n":                                                 `is "5", want a mapping to merge`,
		"  rate_limit: {<<: ~}\n":                                                 "is empty, want a mapping to merge",
		"  rate_limit: {<<: *lim, unit: day, unit: hour}\n":                       `"unit" is given twice, first in line 6`,
		"  rate_limit: {<<: {requests: 5}}\n":                                     `the key "requests" is unknown`,
		"  rate_limit: &r {<<: *r}\n":                                             "is nested too deeply",
		"  rate_limit: \"\"\n":                                                    "want rate_limit",
		"  rate_limit: {unit: hour, requests_per_unit: }\n":                       "is empty, want a whole number between 0 and 4294967295",
		"  shadow_mode: \"\"\n  rate_limit: {unit: hour, requests_per_unit: 1}\n": `is "", want true or false`,
	} {
		if _, err := parsed(head + merged); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", merged, err, want)
		}
	}
}

func TestAnAliasIsTheLastAnchorAboveIt(t *testing.T) {
	const file = "domain: d\ndescriptors:\n- {key: a, rate_limit: &l {unit: hour, requests_per_unit: 1}}\n- {key: b, rate_limit: *l}\n" +
		"- {key: c, rate_limit: &l {unit: hour, requests_per_unit: 5}}\n- {key: e, rate_limit: *l}\n"
	c, err := parsed(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint32{1, 1, 5, 5} {
		if got := c.Limits[i].Shown.RequestsPerUnit; got != want {
			t.Errorf("limit %d: got %d, want %d", i+1, got, want)
		}
	}
	if _, err = parsed("domain: d\ndescriptors:\n- {key: b, rate_limit: *l}\n- {key: a, rate_limit: &l {unit: hour}}\n"); err == nil || !strings.Contains(err.Error(), "f.yaml:3:24: names no anchor above it") {
		t.Errorf("an alias above its anchor: got %v, want an error", err)
	}
}

func TestNumbersAndFlagsAreThoseOfYAML11(t *testing.T) {
	for text, want := range map[string]uint32{"5": 5, "010": 8, "0x10": 16, "0b11": 3, "0o17": 15, "1_000": 1000, "+5": 5, `"5"`: 5} {
		c, err := parsed("domain: d\ndescriptors:\n- {key: a, detailed_metric: , shadow_mode: ~, quota_mode: On, rate_limit: {unit: day, requests_per_unit: " + text + "}}\n")
		if err != nil {
			t.Fatal(err)
		}
		if l := c.Limits[0]; l.Shown.RequestsPerUnit != want || l.Detailed || l.Shadow || !l.Quota {
			t.Errorf("%s: got %v, want a limit of %d with quota_mode alone", text, l, want)
		}
	}
	for _, text := range []string{"-1", "089", "5.0", "1e3", "4294967296", "5x"} {
		if _, err := parsed("domain: d\ndescriptors:\n- {key: a, rate_limit: {unit: day, requests_per_unit: " + text + "}}\n"); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

// drawFields returns fields as they are, and with a part of them merged.
func drawFields(r *rand.Rand, fields []string) (plain, merged string) {
	var kept, brought []string
	for _, f := range fields {
		if r.IntN(2) == 0 {
			brought = append(brought, f)
		} else {
			kept = append(kept, f)
		}
	}
	hidden := []string{}
	if len(kept) > 0 {
		hidden = append(hidden, strings.Split(kept[0], ":")[0]+": 1")
	}
	switch from := strings.Join(append(brought, hidden...), ", "); r.IntN(3) {
	case 0:
		kept = fields
	case 1:
		kept = append([]string{"<<: {" + from + "}"}, kept...)
	default:
		kept = append([]string{"<<: [{" + from + "}, {requests_per_unit: 1000, unit: year}]"}, kept...)
	}
	return "    " + strings.Join(fields, "\n    ") + "\n", "    " + strings.Join(kept, "\n    ") + "\n"
}

func TestRandomMergesDecideAsWhatTheyStandFor(t *testing.T) {
	for seed := range randtest.Seeds(t, 300, 300) {
		r := rand.New(rand.NewPCG(seed, 8))
		plain, merged := "domain: d\ndescriptors:\n", "domain: d\ndescriptors:\n"
		for i := range 1 + r.IntN(5) {
			head := fmt.Sprintf("- key: k%d\n  rate_limit:\n", i)
			a, b := drawFields(r, []string{fmt.Sprint("requests_per_unit: ", r.IntN(100)), "unit: " + []string{"hour", "day", "week"}[r.IntN(3)]})
			plain, merged = plain+head+a, merged+head+b
		}
		if got, want := limitsOf(t, merged), limitsOf(t, plain); got != want {
			t.Fatalf("seed %d:\n%s\ngot  %s\nwant %s", seed, merged, got, want)
		}
	}
}
