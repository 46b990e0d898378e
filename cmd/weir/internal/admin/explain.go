package admin

import (
	"context"
	"fmt"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/envoyproxy"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// explainPushed explains a descriptor: by the rules of the overlay, which are asked first, and by the pushed limit that it
// finds.
func (h *handler) explainPushed(ctx context.Context, config *rules.Config, pushed *envoyproxy.Config, request rules.Attributes, cost int64) (e rules.Explanation, err error) {
	values := map[string]string{}
	for name, value := range request {
		if key, ok := strings.CutPrefix(name, "descriptor."); ok {
			values[key] = value
		}
	}
	found := pushed.Find(request["domain"], values)
	if found.Limit != nil {
		request[rules.PushedLimit], request[rules.PushedKey] = found.Limit.ShownName(), found.Key
	}
	if config.Overlaid() {
		if e, err = config.Explain(ctx, request, cost, h.Engine); err != nil {
			return e, err
		}
	}
	first := len(e.Steps) > 0
	if found.Limit == nil {
		if !first {
			e.Answer = "admitted: the control plane has no limit for this descriptor"
		}
		return e, nil
	}
	name := found.Limit.ShownName()
	for _, s := range e.Steps {
		if r := config.Rule(s.Rule); r != nil && r.Replaces == name && !r.Shadow {
			e.Notes = append(e.Notes, fmt.Sprintf("the limit %q of the control plane is not counted: rule %q stands in its place", name, s.Rule))
			return e, nil
		}
	}
	decides := fmt.Sprintf("the limit %q of the control plane decides", name)
	if first {
		decides = e.Answer + "; unless that refuses, " + decides + ", too"
	}
	e.Answer = decides
	step := rules.Step{Rule: name, File: found.Limit.File, Fields: []rules.Field{{Name: "pushed by", Text: "the control plane"}}}
	if r := config.Rule(name); r != nil {
		step.Fields = append(step.Fields, config.Describe(r)...)
	}
	if found.Limit.Rule != nil {
		q := h.inForce(found.Limit.Rule.For(found.Key, cost))
		step.Key, step.Limit, step.Cost = &q.Key, rules.LimitText(q.Rule), q.Cost
		if err := step.Peek(ctx, q, h.Engine); err != nil {
			return e, err
		}
	}
	e.Steps = append(e.Steps, step)
	return e, nil
}
