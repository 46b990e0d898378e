package rls

import (
	"context"

	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// tell reports what the rules decided without the engine, and what shadows and candidates decided beside it.
func (c *call) tell(ctx context.Context, s *Server) {
	for i := range c.parts {
		if p := &c.parts[i]; s.Judged != nil && p.reason != "" && p.op == take {
			s.Judged(ctx, nameOf(p.rule), !p.refused, p.reason)
		}
	}
	if s.Compared == nil {
		return
	}
	for i, r := range c.results[max(0, len(c.results)-len(c.beside)):] {
		s.Compared(c.beside[i].Rule.Name(), c.decision, r.Decision, r.Err)
	}
}

func nameOf(r *rules.Rule) string {
	if r == nil {
		return ""
	}
	return r.Name
}
