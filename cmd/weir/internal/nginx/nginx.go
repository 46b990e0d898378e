// Package nginx turns the limits in nginx's configuration into rules in files.
//
// [Import] reads the configuration with all its includes (parse.go). It collects the zones, maps and geo blocks, and
// then the places where limits are in force: http, server or location, without what further locations decide by their own
// limits (places.go). The key of a zone becomes attributes, and what an empty key spares becomes an exception (keys.go).
// Each place and zone becomes a rule. What has no counterpart is named with its reason.
package nginx

import (
	"io/fs"
	"slices"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/imported"
)

// Import reads a configuration file, and those that it includes. Notes and errors name files with root before them.
func Import(files fs.FS, root, name string) (*imported.Result, error) {
	all, err := parse(files, root, name)
	if err != nil {
		return nil, err
	}
	c := &converter{zones: map[string]*zone{}, variables: map[string]*directive{}, Result: &imported.Result{}}
	for _, d := range all {
		switch d.name() {
		case "http":
			c.http(d.block)
		case "events", "stream", "mail":
		default: // a file of conf.d begins within http
			if isHTTP(d.name()) {
				c.http(all)
				return c.result()
			}
		}
	}
	return c.result()
}

func isHTTP(name string) bool {
	return slices.Contains([]string{"server", "limit_req_zone", "limit_conn_zone", "limit_req", "limit_conn", "map", "geo"}, name)
}

// converter makes rules.
type converter struct {
	*imported.Result
	zones     map[string]*zone
	variables map[string]*directive // map and geo blocks, by the variable that they set
	made      []made
}

// zone is a zone of limit_req_zone or limit_conn_zone.
type zone struct {
	*directive
	key key
	bad bool // its key has no counterpart
}

// http reads the zones and variables first, because they may follow their uses.
func (c *converter) http(block []*directive) {
	for _, d := range block {
		switch d.name() {
		case "map":
			c.variables[d.arg(1)] = d
		case "geo":
			c.variables[d.words[len(d.words)-1]] = d
		}
	}
	for _, d := range block {
		if d.name() != "limit_req_zone" && d.name() != "limit_conn_zone" {
			continue
		}
		z := &zone{directive: d}
		var err error
		if z.key, err = c.keyOf(d.arg(0)); err != nil {
			z.bad = true
			c.note(d, "%s: not imported: %v", d, err)
		}
		c.zones[zoneName(d)] = z
	}
	c.places(block)
}

// result writes the rules, and checks them. Limits that delay stand alone, so if they meet other limits, they admit at once
// instead.
func (c *converter) result() (*imported.Result, error) {
	notes := c.Notes
	c.write()
	err := c.Check()
	if err == nil {
		return c.Result, nil
	}
	for i := range c.made {
		if d := weir.Describe(c.made[i].limit); d.Delays {
			c.made[i].limit = weir.TokenBucket{Rate: d.Rate, Burst: d.Capacity}
			notes = append(notes, imported.Note{File: c.made[i].zone.file, Line: c.made[i].zone.line, Text: "requests that nginx delays are admitted at once: limits that delay cannot be decided with others"})
		}
	}
	c.Rules, c.Notes = nil, notes
	c.write()
	return c.Result, c.Check()
}
