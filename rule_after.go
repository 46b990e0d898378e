package weir

// ChargeAfter returns the rule for costs that are known only when the work is done. It shares all states with r.
//
// [Engine.Record] then counts what was used in any case. A [github.com/weirflow/weir/layer.Guard] keeps the record whatever its
// policy, and makes it when the engine is back, because work that was done cannot be refused. A
// [github.com/weirflow/weir/layer.Prefetch] takes nothing ahead under such a rule, so that the next caller sees what was recorded.
//
// ChargeAfter refuses a Concurrency and a Ban with a *LimitError: a slot is held during the work, and a ban counts refusals of takes.
func (r *Rule) ChargeAfter() (*Rule, error) {
	if r.held != nil {
		return nil, ruleError(r.Name(), "charge", CodeHeld, "cannot be after the work, because "+r.held.compiled.Text+" holds slots during the work; give the slots a rule of their own")
	}
	if r.compiled.Bans {
		return nil, ruleError(r.Name(), "charge", CodeBan, "cannot be after the work beside a ban: what was used is recorded, and only a take that is refused counts")
	}
	made, err := NewRule(r.Name(), r.limits...)
	if err == nil {
		made.compiled.After = true
	}
	return made, err
}

// ChargesAfter reports whether ChargeAfter made the rule.
func (r *Rule) ChargesAfter() bool { return r != nil && r.compiled.After }
