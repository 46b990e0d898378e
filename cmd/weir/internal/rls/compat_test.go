package rls

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/status"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/envoyproxy"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// compatCase is a case of testdata/compat.txt, which describes the form.
type compatCase struct {
	name, config string
	environment  map[string]string
	steps        []string
}

func compatCases(t *testing.T, file string) (cases []compatCase) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	config, inConfig := "", false
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSuffix(line, "\n")
		rest, isCase := strings.CutPrefix(line, "case ")
		switch {
		case line == "config:":
			config, inConfig = "", true
		case isCase:
			inConfig = false
			c := compatCase{config: config, environment: map[string]string{}}
			for _, word := range strings.Fields(rest) {
				if name, value, ok := strings.Cut(word, "="); ok {
					c.environment[name] = value
				} else {
					c.name += " " + word
				}
			}
			cases = append(cases, c)
		case inConfig:
			config += line + "\n"
		case line != "" && len(cases) > 0:
			c := &cases[len(cases)-1]
			c.steps = append(c.steps, line)
		}
	}
	return cases
}

// newCompat returns a service of files of envoyproxy/ratelimit, at a midnight on a Thursday, and the clock.
func newCompat(t testing.TB, file string, environment map[string]string, change ...func(*setup)) (*Server, *time.Time) {
	t.Helper()
	read, err := envoyproxy.Read(func(name string) string { return environment[name] }, false)
	if err != nil {
		t.Fatal(err)
	}
	stats := &envoyproxy.Stats{}
	parse := envoyproxy.Parser(read.Settings, stats)
	config, err := parse(rules.Options{}, rules.File{Name: "config.yaml", Content: []byte(file)})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(0, 0)
	s, _ := newServer(t, shop, func(o *setup) {
		o.desk.Config, o.Stats, o.Now = config, stats, func() time.Time { return now }
		o.desk.Engine = weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now.UnixNano() }})
		for _, more := range change {
			more(o)
		}
	})
	return s, &now
}

// compatCall reads a call of a case.
func compatCall(t *testing.T, line string) string {
	t.Helper()
	parts := strings.Split(line, " | ")
	head := strings.Fields(parts[0])
	call := map[string]any{}
	if len(head) > 0 {
		call["domain"] = head[0]
	}
	if len(head) == 3 {
		call["hitsAddend"], _ = strconv.Atoi(head[2])
	}
	var descriptors []any
	for _, text := range parts[1:] {
		words := strings.Fields(text)
		var list []any
		for pair := range strings.SplitSeq(words[0], ",") {
			if key, value, _ := strings.Cut(pair, "="); pair != "-" {
				list = append(list, map[string]any{"key": key, "value": value})
			}
		}
		d := map[string]any{"entries": list}
		for i, word := range words {
			switch word {
			case "hits":
				d["hitsAddend"] = words[i+1]
			case "negative":
				d["isNegativeHits"] = true
			case "limit":
				count, unit, _ := strings.Cut(words[i+1], "/")
				n, _ := strconv.Atoi(count)
				d["limit"] = map[string]any{"requestsPerUnit": n, "unit": strings.ToUpper(unit)}
			}
		}
		descriptors = append(descriptors, d)
	}
	call["descriptors"] = descriptors
	encoded, _ := json.Marshal(call)
	return string(encoded)
}

// told is an answer as a case has it, with as many figures of each status.
func told(a *service.RateLimitResponse, err error, want string) string {
	if err != nil {
		return "error " + status.Convert(err).Message()
	}
	text, words := a.OverallCode.String(), strings.Fields(want)
	for i, d := range a.Statuses {
		figures := 1
		if i+1 < len(words) {
			figures = 1 + strings.Count(words[i+1], "/")
		}
		if figures == 1 && d.CurrentLimit == nil && d.LimitRemaining == 0 {
			text += " " + d.Code.String()
			continue
		}
		all := []string{d.Code.String(), fmt.Sprint(d.LimitRemaining), fmt.Sprint(d.CurrentLimit.GetRequestsPerUnit()), d.CurrentLimit.GetUnit().String(), fmt.Sprintf("%ds", d.DurationUntilReset.GetSeconds())}
		text += " " + strings.Join(all[:max(2, min(figures, len(all)))], "/")
	}
	return text
}

func TestFilesOfEnvoyproxyDecideAsThere(t *testing.T) {
	cases := compatCases(t, "testdata/compat.txt")
	if len(cases) < 80 {
		t.Errorf("got %d cases, want at least 80", len(cases))
	}
	for _, c := range cases {
		t.Run(strings.TrimSpace(c.name), func(t *testing.T) { c.play(t) })
	}
}

func TestTheExamplesOfEnvoyproxyDecideAsDocumented(t *testing.T) {
	for _, c := range compatCases(t, "testdata/examples.txt") {
		t.Run(strings.TrimSpace(c.name), func(t *testing.T) { c.play(t) })
	}
}

func (c *compatCase) play(t *testing.T) {
	s, now := newCompat(t, c.config, c.environment)
	times := 1
	var answer *service.RateLimitResponse
	var failed error
	for _, step := range c.steps {
		verb, rest, _ := strings.Cut(step, " ")
		want, got := "", ""
		switch verb {
		case "times":
			times, _ = strconv.Atoi(rest)
		case ">":
			for range times {
				answer, failed = s.ShouldRateLimit(t.Context(), asked(t, compatCall(t, rest)))
			}
			times = 1
		case "<":
			want, got = rest, told(answer, failed, rest)
		case "after":
			d, err := time.ParseDuration(rest)
			if err != nil {
				t.Fatal(err)
			}
			*now = now.Add(d)
		case "stat":
			name, value, _ := strings.Cut(rest, " ")
			want, got = value, statOf(s, name)
		case "headers":
			var list []string
			for _, h := range answer.ResponseHeadersToAdd {
				list = append(list, h.Key+"="+h.Value)
			}
			want, got = rest, strings.Join(list, " ")
		case "metadata":
			var m any
			_ = json.Unmarshal([]byte(rest), &m)
			want, got = fmt.Sprint(m), fmt.Sprint(answer.DynamicMetadata.AsMap())
		default:
			t.Fatalf("%s: no step", step)
		}
		if got != want {
			t.Errorf("%s: got %s", step, got)
		}
	}
}

// away is the failure of an engine that may have counted.
type away struct{}

func (away) Error() string     { return "away" }
func (away) Unavailable() bool { return true }

func TestALimitMayAdmitWhileTheEngineIsAway(t *testing.T) {
	s, _ := newCompat(t, `{domain: shop, descriptors: [{key: free, rate_limit: {unit: day, requests_per_unit: 3}, weir: {on_failure: allow}},
  {key: hard, rate_limit: {unit: day, requests_per_unit: 3}}]}`, nil, func(o *setup) {
		o.desk.Engine = weir.Kit.EngineOf(func(_ context.Context, call weir.Call) (weir.Answer, error) {
			if call.Op == weir.OpEach {
				for i := range call.Each.Results {
					call.Each.Results[i].Err = away{}
				}
				return weir.Answer{}, nil
			}
			return weir.Answer{}, away{}
		}, o.desk.Engine.Check)
	})
	const unavailable = "rpc error: code = Unavailable desc = rls: the engine could not decide, and admitted nothing"
	for call, want := range map[string]string{
		callOf(entries("free=x")):                     "OK OK:0",
		callOf(entries("free=x"), entries("free=y")):  "OK OK:0 OK:0",
		callOf(entries("free=x", `"hitsAddend":"2"`)): "OK OK:0",
		callOf(entries("hard=x")):                     unavailable,
		callOf(entries("free=x"), entries("hard=x")):  unavailable,
	} {
		if got := summary(t, s, call); got != want {
			t.Errorf("%s: got %s, want %s", call, got, want)
		}
	}
}

// statOf returns the value of a statistic.
func statOf(s *Server, name string) string {
	full := "ratelimit.service.rate_limit." + name
	switch name {
	case "global":
		full = "ratelimit.service.global_shadow_mode"
	case "service_error":
		full = "ratelimit.service.call.should_rate_limit." + name
	}
	var b strings.Builder
	_ = s.Stats.Write(&b)
	for line := range strings.Lines(b.String()) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), full+": "); ok {
			return value
		}
	}
	return "0"
}

// without is an engine that holds no limit of a kind.
type without struct {
	weir.Engine
	kind string
}

func (e without) Check(rules ...*weir.Rule) error {
	if text := rules[0].String(); strings.Contains(text, e.kind) {
		return fmt.Errorf("%s is not held", text)
	}
	return nil
}

// An engine that holds no large bucket holds the window, and the other way round.
func TestALimitInACallIsCheckedAsItDecides(t *testing.T) {
	refuse := func(what string) func(*setup) {
		return func(o *setup) { o.desk.Engine = without{o.desk.Engine, what} }
	}
	compat, _ := newCompat(t, "{domain: shop, descriptors: [{key: a}]}", nil, refuse("token bucket"))
	own, _ := newServer(t, shop, refuse("fixed window"))
	for name, s := range map[string]*Server{"compat": compat, "rules": own} {
		if got := summary(t, s, callOf(entries("a=x", `"limit":{"requestsPerUnit":3,"unit":"HOUR"}`))); got != "OK OK:2" {
			t.Errorf("%s: got %s, want the call admitted", name, got)
		}
	}
}
