package nginx

import "strings"

// noteChecks notes where nginx would not ask Weir about requests that imported limits decide: a location with an auth_request of its own does
// not inherit that of its server, and cannot have both.
func (c *converter) noteChecks(isImported func(*zone) bool) {
	noted := map[*directive]bool{}
	for _, s := range c.servers {
		for _, p := range s.scopes {
			for _, check := range p.settings["auth_request"] {
				if noted[check] || s.asksWeir(check) || !c.limited(p, isImported) {
					continue
				}
				noted[check] = true
				at := ownerOf(check, p)
				c.note(at, "%s: nginx has one auth_request a place, here %s, so it would not ask Weir; docs/howto/gateways.md#a-location-with-its-own-auth_request has both", at, check.last())
			}
		}
	}
}

// limited reports whether an imported limit decides requests of a scope.
func (c *converter) limited(p scope, isImported func(*zone) bool) bool {
	for _, d := range p.limits() {
		if z := c.zone(zoneName(d)); z != nil && isImported(z) {
			return true
		}
	}
	return false
}

// ownerOf returns the block of a directive if that is the scope, and otherwise the directive itself, which a block around the scope has.
func ownerOf(d *directive, p scope) *directive {
	for _, inner := range p.block {
		if inner == d {
			return p.directive
		}
	}
	return d
}

// asksWeir reports whether the location of an auth_request passes it to a check of Weir.
func (s *server) asksWeir(check *directive) bool {
	at := s.target(check.last())
	if at < 0 {
		return false
	}
	for _, d := range s.scopes[at].block {
		if d.name() == "proxy_pass" && strings.Contains(d.arg(0), "/v1/check") {
			return true
		}
	}
	return false
}
