package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// described is the part of the OpenAPI document that the tests read.
type described struct {
	Paths      map[string]map[string]json.RawMessage
	Components struct {
		Schemas map[string]struct {
			Required   []string
			Properties map[string]struct {
				MaxLength, MaxItems int
				Default             any
			}
		}
	}
}

func describe(t *testing.T) (d described) {
	t.Helper()
	w := httptest.NewRecorder()
	newFixture(t, usual).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/openapi.json", nil))
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("GET /openapi.json: %d %s", w.Code, w.Header().Get("Content-Type"))
	}
	if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOpenAPINamesEveryRoute(t *testing.T) {
	d := describe(t)
	got, want := map[string]string{}, map[string]string{}
	for path, methods := range d.Paths {
		got[path] = strings.Join(slices.Sorted(maps.Keys(methods)), " ")
	}
	for path, r := range routes {
		want[path], _, _ = strings.Cut(strings.ToLower(strings.Join(r.methods, " ")), " head") // implied by get
	}
	if !maps.Equal(got, want) {
		t.Errorf("the document names %v\nthe routes are %v", got, want)
	}
}

var reference = regexp.MustCompile(`"\$ref": "#/components/(\w+)/(\w+)"`)

func TestOpenAPIReferencesLeadSomewhere(t *testing.T) {
	var d struct {
		Components map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(openAPIDocument, &d); err != nil {
		t.Fatal(err)
	}
	found := reference.FindAllStringSubmatch(string(openAPIDocument), -1)
	if got, want := len(found), strings.Count(string(openAPIDocument), `"$ref"`); got != want || got == 0 {
		t.Fatalf("%d of %d references are to components", got, want)
	}
	for _, to := range found {
		if d.Components[to[1]][to[2]] == nil {
			t.Errorf("there is no %s %s", to[1], to[2])
		}
	}
}

func TestOpenAPIHasEveryFieldOfTheAnswers(t *testing.T) {
	d, f := describe(t), newFixture(t, usual, "slots=concurrency 20 lease 30s and quota 1000/day")
	answers := map[string]string{
		"Answer":  post(f, "/v1/reserve", `{"rule":"slots","key":"a","cost":20}`).Body.String(),
		"Problem": post(f, "/v1/take", `{}`).Body.String(),
		"Stats":   get(f, "/v1/stats").Body.String(),
	}
	var parts struct {
		Rules, Busiest []json.RawMessage
		Waiting        json.RawMessage
	}
	if err := json.Unmarshal([]byte(answers["Stats"]), &parts); err != nil || len(parts.Rules) == 0 || len(parts.Busiest) == 0 {
		t.Fatalf("stats after a decision: %s (%v)", answers["Stats"], err)
	}
	answers["RuleStats"], answers["KeyCount"], answers["Waiting"] = string(parts.Rules[0]), string(parts.Busiest[0]), string(parts.Waiting)
	var waiting struct {
		Rules   []json.RawMessage
		Refused json.RawMessage
	}
	if err := json.Unmarshal(parts.Waiting, &waiting); err != nil || len(waiting.Rules) == 0 {
		t.Fatalf("waiting callers: %s (%v)", parts.Waiting, err)
	}
	answers["WaitingRule"], answers["Reasons"] = string(waiting.Rules[0]), string(waiting.Refused)
	delete(d.Components.Schemas["Answer"].Properties, "message") // of rules in files
	delete(d.Components.Schemas["Answer"].Properties, "held")
	delete(d.Components.Schemas["Answer"].Properties, "paid_by")
	delete(d.Components.Schemas["Answer"].Properties, "warnings")
	delete(d.Components.Schemas["Stats"].Properties, "reloads")
	delete(d.Components.Schemas["KeyCount"].Properties, "cut") // of long keys
	delete(d.Components.Schemas["KeyCount"].Properties, "shadow")
	delete(d.Components.Schemas["RuleStats"].Properties, "bans")
	delete(d.Components.Schemas["RuleStats"].Properties, "unnoted")
	for schema, answer := range answers {
		var fields map[string]any
		if err := json.Unmarshal([]byte(answer), &fields); err != nil {
			t.Fatal(err)
		}
		if schema == "Answer" { // with the fields of a refusal
			if err := json.Unmarshal(post(f, "/v1/take", `{"rule":"slots","key":"a"}`).Body.Bytes(), &fields); err != nil {
				t.Fatal(err)
			}
		}
		got, want := slices.Sorted(maps.Keys(d.Components.Schemas[schema].Properties)), slices.Sorted(maps.Keys(fields))
		if !slices.Equal(got, want) {
			t.Errorf("%s: the document has %v, the answer %v", schema, got, want)
		}
	}
	for schema := range answers {
		sometimes := map[string]int{"Answer": 7, "Problem": 1, "Stats": 9} // optional fields: limit, remaining, refused_by, cause, lease, token and reset_at; field, those of the memory engine
		got, want := len(d.Components.Schemas[schema].Required), len(d.Components.Schemas[schema].Properties)-sometimes[schema]
		if got != want {
			t.Errorf("%s: %d fields are required, but %d are always there", schema, got, want)
		}
	}
}

func TestOpenAPIHasEveryFieldOfTheRequests(t *testing.T) {
	d, f := describe(t), newFixture(t, usual)
	for path, schemas := range map[string][]string{
		"/v1/take": {"Request", "Requests"}, "/v1/wait": {"PatientRequest", "PatientRequests"}, "/v1/reserve": {"PatientRequest", "PatientRequests"},
		"/v1/settle": {"Settle"}, "/v1/renew": {"Renew"},
	} {
		got := map[string]bool{}
		for _, schema := range schemas {
			for name := range d.Components.Schemas[schema].Properties {
				got[name] = true
			}
		}
		delete(got, "limit") // with --dynamic
		unknown := post(f, path, `{"x":1}`).Body.String()
		_, list, _ := strings.Cut(unknown, "not one of ")
		list, _, _ = strings.Cut(list, `"`)
		want := strings.Split(list, ", ")
		if slices.Sort(want); !slices.Equal(slices.Sorted(maps.Keys(got)), want) {
			t.Errorf("%s: the document has the fields %v, the decoder knows %v", path, slices.Sorted(maps.Keys(got)), want)
		}
		for name := range got {
			if w := post(f, path, `{"`+name+`":{}}`); strings.Contains(w.Body.String(), "not one of") {
				t.Errorf("%s: the decoder does not know %s: %s", path, name, w.Body)
			}
		}
	}
}
