package backtest

import (
	"slices"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/front"
	"github.com/weirflow/weir/internal/accesslog"
)

// The names for the keys of rules.
const (
	client   = "client" // an address
	customer = "customer"
	key      = "key"
)

// ofCustomers are parts of the names of attributes that tell customers apart.
var ofCustomers = []string{"key", "token", "auth", "tenant", "customer", "account", "user", "org", "team", "project", "consumer", "workspace", "subject", "client-id", "client_id"}

// subjectOf returns what a key made of the attributes is called.
func subjectOf(attributes []string) string {
	if len(attributes) != 1 {
		return key
	}
	name := strings.ToLower(attributes[0])
	switch {
	case name == "client":
		return client
	case slices.ContainsFunc(ofCustomers, func(part string) bool { return strings.Contains(name, part) && name != "header.user-agent" }):
		return customer
	}
	return key
}

// SubjectOfKey returns what the keys of a replay by fields of a log are called, where no rule names them.
func SubjectOfKey(fields string) string {
	name := strings.ToLower(fields)
	switch {
	case name == "ip":
		return client
	case name == "user":
		return name
	case name == key || strings.Contains(name, ",") || strings.Contains(name, "agent"):
		return key
	}
	return subjectOf([]string{name})
}

// subjectOf returns what a key of a row is called, or "" of a row without keys.
func (t *try) subjectOf(r *row) string {
	if r.rule == nil {
		return ""
	}
	attributes, _ := t.config.KeyedBy(r.rule)
	if len(attributes) == 0 {
		return ""
	}
	return subjectOf(attributes)
}

// subject is the attribute that counts the requests of a log for all rules together: the one that rules limit customers
// by, or the address of the client.
type subject struct {
	attribute string // "" for the address
	hashed    bool   // rules have its hash as a key
}

// subjectOfFiles returns the attribute of the first rule that limits customers.
func subjectOfFiles(files []File) (s subject) {
	for _, f := range files {
		for _, r := range f.Config.Rules {
			attributes, hashed := f.Config.KeyedBy(r)
			if subjectOf(attributes) == customer && !r.Deny && !r.Unlimited {
				return subject{attributes[0], hashed}
			}
		}
	}
	return subject{}
}

// subjects finds the subjects of lines.
type subjects struct {
	subject
	slots []accesslog.Slot
}

// of returns the subject of a line, and whether it is a customer. A line without the attribute belongs to its address.
func (s *subjects) of(e *accesslog.Entry, address []byte) (who []byte, keyed bool) {
	for _, slot := range s.slots {
		if value, ok := e.Value(slot); ok && len(value) > 0 {
			if s.hashed {
				return []byte(front.HashOf(string(value))), true
			}
			return value, true
		}
	}
	return address, false
}

// unitOf returns what the cost of a rule counts, in the plural, or "" for requests.
func unitOf(c *rules.Config, r *rules.Rule) string {
	name := strings.ToLower(c.CostFrom(r))
	name = strings.TrimPrefix(strings.TrimPrefix(name, "header."), "x-")
	if at := strings.LastIndexByte(name, '.'); at >= 0 {
		name = name[at+1:]
	}
	switch {
	case name == "":
		return ""
	case name == "cost" || name == "units":
		return "units"
	case strings.HasSuffix(name, "s"):
		return name
	}
	return name + "s"
}
