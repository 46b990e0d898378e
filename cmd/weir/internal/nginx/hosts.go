package nginx

import (
	"slices"
	"strings"
)

// hostsThatReach returns the hosts whose requests a server gets, or the hosts that it does not get. A default server also gets
// the hosts that no server names: with its names alone, a client would pass its limits by a Host of its own making.
func (c *converter) hostsThatReach(server *directive, isDefault bool, named []string) (hosts, others []string) {
	hosts = plainHosts(server)
	if len(hosts) == 0 {
		return nil, named
	}
	if !isDefault {
		return hosts, nil
	}
	others = minus(named, hosts)
	for _, host := range hosts {
		if slices.ContainsFunc(others, func(other string) bool { return covers(other, host) }) {
			c.note(server, "server %s: requests of hosts that no server names are not limited, because *.NAME of another server has one of its names", hosts[0])
			return hosts, nil
		}
	}
	return nil, others
}

// covers reports whether *.NAME or NAME.* has a host.
func covers(pattern, host string) bool {
	head, tail, wild := strings.Cut(pattern, "*")
	return wild && strings.HasPrefix(host, head) && strings.HasSuffix(host, tail)
}

// defaultServers reports which servers are the default of one of their addresses: the server that says so, or the first one.
func defaultServers(servers []*directive) []bool {
	of, chosen := map[string]int{}, map[string]bool{}
	for i, s := range servers {
		for address, says := range addressesOf(s) {
			if _, found := of[address]; !found || says && !chosen[address] {
				of[address], chosen[address] = i, says
			}
		}
	}
	defaults := make([]bool, len(servers))
	for _, i := range of {
		defaults[i] = true
	}
	return defaults
}

// addressesOf returns the addresses at which a server listens, and whether it says that it is their default.
func addressesOf(server *directive) map[string]bool {
	addresses := map[string]bool{}
	for _, d := range server.block {
		if d.name() == "listen" {
			addresses[addressOf(d.arg(0))] = slices.Contains(d.words, "default_server") || slices.Contains(d.words, "default")
		}
	}
	if len(addresses) == 0 {
		addresses[addressOf("80")] = false
	}
	return addresses
}

// addressOf gives an address the form HOST:PORT, as nginx completes it.
func addressOf(listen string) string {
	switch {
	case strings.HasPrefix(listen, "unix:"):
		return listen
	case strings.Trim(listen, "0123456789") == "":
		return "*:" + listen
	case strings.LastIndex(listen, ":") <= strings.LastIndex(listen, "]"):
		return listen + ":80"
	}
	return listen
}

// hostsOf returns the names of a server as patterns, and notes those that are none.
func (c *converter) hostsOf(server *directive) []string {
	for _, d := range server.block {
		if d.name() != "server_name" {
			continue
		}
		for _, name := range d.words[1:] {
			if strings.HasPrefix(name, "~") {
				c.note(d, "server_name %s: not imported: rules have no regular expressions", name)
			}
		}
	}
	return plainHosts(server)
}

// plainHosts returns no hosts for a server of all names.
func plainHosts(server *directive) (hosts []string) {
	for _, d := range server.block {
		if d.name() != "server_name" {
			continue
		}
		for _, name := range d.words[1:] {
			switch {
			case name == "_", name == "", strings.HasPrefix(name, "~"), strings.HasPrefix(name, "$"):
			case strings.HasPrefix(name, "."):
				hosts = append(hosts, name[1:], "*"+name)
			default:
				hosts = append(hosts, name)
			}
		}
	}
	return hosts
}
