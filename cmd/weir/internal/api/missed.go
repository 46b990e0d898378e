package api

import (
	"bytes"
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
)

// appendMissed adds warnings of keys that no request by attributes has, which a peek or a reset misses. Callers
// that name rule and key themselves may have such keys.
func appendMissed(answer []byte, force *decide.InForce, requests []weir.Request) []byte {
	if force.Config == nil {
		return answer
	}
	var warnings []string
	for _, q := range requests {
		if why, _ := force.Config.NoKey(q.Rule.Name(), q.Key, false); why != "" {
			warnings = append(warnings, fmt.Sprintf("no request by attributes has the key %s under rule %s: %s", decide.Quote(q.Key), decide.Quote(q.Rule.Name()), why))
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
