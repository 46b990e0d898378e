package rules

// checkKind notes fields that exclude one another.
func (d *draft) checkKind() {
	var kinds []string
	for _, name := range []string{"limit", "deny", "unlimited"} {
		if n, given := d.given[name]; given && (name == "limit" || name == "deny" && d.Deny || name == "unlimited" && d.Unlimited) {
			if kinds = append(kinds, name); len(kinds) > 1 {
				n.fail("excludes %s", kinds[0])
			}
		}
	}
	if len(kinds) == 0 {
		d.node.fail("has no limit, want limit, deny: true or unlimited: true")
		return
	}
	if d.Otherwise != "" {
		d.checkFloor()
	}
	if except, given := d.given["except"]; given && d.named() {
		except.fail("belongs to a match, and the rule has none; for every other request write match: any")
	}
	if d.Pool {
		d.checkPool()
	}
	if d.Shadow && kinds[0] != "unlimited" {
		d.checkShadow()
	}
	if kinds[0] == "limit" {
		d.checkLimitFields()
		return
	}
	if _, given := d.given["match"]; !given && d.Replaces == "" {
		d.given[kinds[0]].fail("has no match, so it never decides; for every request write match: any")
	}
	for _, name := range []string{"key", "hashed", "missing", "budget", "otherwise", "plans", "keys", "cost", "charge", "estimate", "candidate", "on_failure"} {
		if n, given := d.given[name]; given {
			n.fail("belongs to a limit, and the rule has %s", kinds[0])
		}
	}
	if n, given := d.given["message"]; given && d.Unlimited {
		n.fail("is for people whose request the rule refuses, and it exempts all that match")
	}
	if d.Unlimited && d.Shadow {
		d.given["shadow"].fail("has no meaning beside unlimited")
	}
}

// checkLimitFields notes fields that can have no effect beside the others of a rule with a limit.
func (d *draft) checkLimitFields() {
	if d.named() {
		for _, name := range []string{"plans", "keys", "cost", "shadow", "candidate"} {
			if n, given := d.given[name]; given && (name != "shadow" || d.Shadow) {
				n.fail("belongs to a match, and the rule has none: callers that name the rule are decided by its limit alone; for every request write match: any")
			}
		}
	}
	if n, given := d.given["missing"]; given && len(d.key) == 0 {
		n.fail("belongs to a key, and the rule has none")
	}
}

// checkShadow notes fields that can have no effect in a shadow.
func (d *draft) checkShadow() {
	for name, why := range map[string]string{
		"candidate":  "is never decided beside shadow: true; put the limit into a rule of its own",
		"message":    "is for people whose request the rule refuses, and a shadow refuses none",
		"estimate":   "is of reservations, and a shadow holds nothing",
		"on_failure": "is the answer while the engine fails, and a shadow answers no request",
	} {
		if n, given := d.given[name]; given && (name == "message" || d.limitNode.Node != nil) {
			n.fail("%s", why)
		}
	}
}
