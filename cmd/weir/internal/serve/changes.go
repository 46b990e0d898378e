package serve

import (
	"log/slog"
	"slices"

	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// mostChanges bounds the lines about one reload.
const mostChanges = 20

// logChanges logs what keys lose by a reload, because states belong to the name, the key and the window of a rule.
func logChanges(log *slog.Logger, changes []rules.Change) {
	logged := 0
	warn := func(rule, why string) {
		if logged++; logged <= mostChanges {
			log.Warn("keys of a rule begin with full limits", "rule", rule, "why", why)
		}
	}
	for _, c := range changes {
		switch {
		case c.Fresh != "":
			warn(c.Rule, c.Fresh)
		case c.Kind == rules.Added:
			if old := removedLike(changes, c); old != "" {
				warn(c.Rule, "it is the rule "+old+" by another name")
			}
		}
	}
	if more := logged - mostChanges; more > 0 {
		log.Warn("keys of more rules begin with full limits", "rules", more)
	}
}

// removedLike returns the name of a removed rule with the fields of an added one, or "".
func removedLike(changes []rules.Change, added rules.Change) string {
	for _, c := range changes {
		if c.Kind == rules.Removed && slices.Equal(c.Old, added.New) {
			return c.Rule
		}
	}
	return ""
}
