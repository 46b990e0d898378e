// Package nginx turns the limits in nginx's configuration into rules in files.
//
// [Import] makes rules of the limits that they decide exactly as nginx does. It names every other limit_req with its line and
// the reason, and leaves it out with all uses of its zone, which count together.
//
//  1. It reads the configuration with all its includes (words.go, lua.go, parse.go).
//  2. It finds how nginx chooses a server by port and host (servers.go), and a scope in it by path (locations.go), with the
//     settings in force there (scopes.go). In both the first line that fits decides (choice.go). Zones whose
//     requests come by internal redirects are left out (redirects.go).
//  3. The key of a zone becomes attributes (keys.go), and a map or geo another list (tables.go).
//  4. The lines that lead to a limit, without those above them, become the conditions of rules (rules.go). Rules of one zone
//     share a budget.
package nginx

import (
	"fmt"
	"io/fs"
	"slices"

	"github.com/weirflow/weir/cmd/weir/internal/imported"
)

// Import reads a configuration file, and those that it includes. Notes and errors name files with root before them.
func Import(files fs.FS, root, name string) (*imported.Result, error) {
	all, err := parse(files, root, name)
	if err != nil {
		return nil, err
	}
	c := &converter{Result: &imported.Result{}, variables: map[string]*directive{}}
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
	zones     []*zone
	variables map[string]*directive // map and geo blocks, by the variable that they set
	servers   []*server
	ports     []port
	ipv6      bool // clients may have IPv6 addresses
}

// http reads the zones and variables first, because they may follow their uses.
func (c *converter) http(block []*directive) {
	for _, d := range block {
		switch d.name() {
		case "map", "geo":
			if len(d.words) > 1 {
				name, _ := only(d.last())
				c.variables[name] = d
			}
		case "limit_req_zone":
			c.zones = append(c.zones, newZone(d))
		}
	}
	top := scope{}.within(&directive{words: []string{"http"}, block: block})
	for _, d := range block {
		if d.name() == "server" {
			c.addServer(top, d)
		}
	}
	if len(c.servers) == 0 {
		c.addServer(top, &directive{words: []string{"server"}})
	}
	c.ports = ports(c.servers)
	c.noteOthers(block)
	if d := unmerged(block); d != nil {
		for _, s := range c.servers {
			s.strange(d, "makes other paths")
		}
	}
}

func (c *converter) addServer(top scope, d *directive) {
	s := newServer(d)
	s.locations = newLocations(top.within(d))
	for _, a := range s.addresses {
		c.ipv6 = c.ipv6 || a.host[0] == '['
	}
	c.servers = append(c.servers, s)
}

// unmerged returns a directive merge_slashes off.
func unmerged(block []*directive) *directive {
	for _, d := range block {
		if d.name() == "merge_slashes" && d.arg(0) == "off" {
			return d
		}
		if found := unmerged(d.block); found != nil {
			return found
		}
	}
	return nil
}

// noteOthers notes directives about limits that have no counterpart.
func (c *converter) noteOthers(block []*directive) {
	for _, d := range block {
		switch d.name() {
		case "limit_conn":
			c.note(d, "%s: not imported: nginx cannot release the slots of rules; keep it in nginx, or ask /v1/reserve", d)
		case "limit_req_status":
			c.note(d, "%s: not imported: weir serve --check-status, or the gateway, chooses the status", d)
		case "limit_rate", "limit_rate_after":
			c.note(d, "%s: not imported: rules limit requests", d)
		case "limit_req":
			if c.zone(zoneName(d)) == nil {
				c.note(d, "%s: not imported: no zone has this name", d)
			}
		case "set_real_ip_from":
			c.ipv6 = true
		}
		c.noteOthers(d.block)
	}
}

func (c *converter) note(d *directive, format string, args ...any) {
	c.Notes = append(c.Notes, imported.Note{File: d.file, Line: d.line, Text: fmt.Sprintf(format, args...)})
}
