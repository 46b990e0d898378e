package api

import (
	"bytes"
	"fmt"

	"github.com/weirflow/weir"
)

// unnamed says why no request can name a rule, in words that follow its name.
func (f *inForce) unnamed(rule string) string {
	if f.config == nil || f.config.Rule(rule) == nil {
		return "no rule has that name"
	}
	return f.config.Unnamed(rule)
}

// Unnamed says why no request can name a rule, in words that follow its name.
func (a *API) Unnamed(rule string) string { return a.force.Load().unnamed(rule) }

// appendMissed adds warnings of keys that no request by attributes has, which a peek or a reset misses. Callers
// that name rule and key themselves may have such keys.
func (f *inForce) appendMissed(answer []byte, requests []weir.Request) []byte {
	if f.config == nil {
		return answer
	}
	var warnings []string
	for _, q := range requests {
		if why, _ := f.config.NoKey(q.Rule.Name(), q.Key, false); why != "" {
			warnings = append(warnings, fmt.Sprintf("no request by attributes has the key %s under rule %s: %s", quote(q.Key), quote(q.Rule.Name()), why))
		}
	}
	if len(warnings) == 0 {
		return answer
	}
	if answer = bytes.TrimSuffix(answer, []byte("}\n")); len(answer) > 1 {
		answer = append(answer, ',')
	}
	answer = append(answer, `"warnings":[`...)
	for _, text := range warnings {
		answer = append(appendText(answer, text), ',')
	}
	answer[len(answer)-1] = ']'
	return append(answer, "}\n"...)
}
