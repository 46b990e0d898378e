package nginx

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// server is a server block.
type server struct {
	*directive
	addresses map[string]address
	hosts     []hostName
	name      string // the value of $server_name
	*locations
	odd string // why rules cannot tell its requests from those of other servers, or ""
}

// address is where a server listens.
type address struct {
	host      string // * and [::] are all
	port      string
	isDefault bool
}

// hostName is a name of a server.
type hostName struct {
	pattern
	dotted bool // from .NAME, which is two names
}

func newServer(d *directive) *server {
	s := &server{directive: d, addresses: map[string]address{}}
	named := false
	for _, inner := range d.block {
		switch inner.name() {
		case "listen":
			s.listen(inner)
		case "server_name":
			for _, name := range inner.words[1:] {
				if !named {
					s.name, named = strings.TrimPrefix(strings.ToLower(name), "."), true
				}
				s.addName(inner, name)
			}
		}
	}
	if len(s.addresses) == 0 {
		s.addresses["*:80"] = address{"*", "80", false}
	}
	return s
}

func (s *server) strange(d *directive, why string) {
	if s.odd == "" {
		s.odd = fmt.Sprintf("%s (line %d) %s", d, d.line, why)
	}
}

func (s *server) listen(d *directive) {
	host, port := "*", d.arg(0)
	if at := strings.LastIndexByte(port, ':'); at > strings.LastIndexByte(port, ']') {
		host, port = port[:at], port[at+1:]
	} else if strings.Trim(port, "0123456789") != "" {
		host, port = port, "80"
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil || host == "unix" || host == "" {
		s.strange(d, "is no single port")
		return
	}
	if host == "0.0.0.0" {
		host = "*"
	}
	isDefault := slices.Contains(d.words, "default_server") || slices.Contains(d.words, "default")
	s.addresses[host+":"+port] = address{host, port, isDefault}
}

// addName adds a name. One that rules cannot match makes the server odd, because it may have requests that seem to be those
// of another one.
func (s *server) addName(d *directive, name string) {
	text := strings.ToLower(name)
	switch {
	case name == "": // of requests without a host, which no gateway asks about
	case strings.HasPrefix(name, "~"):
		p, err := expression(name[1:], text != name)
		if err != nil {
			s.strange(d, "has a name that rules cannot match: "+err.Error())
			return
		}
		s.hosts = append(s.hosts, hostName{p, false})
	case !isPlainName(name):
		s.strange(d, "has a name that rules cannot match")
	case strings.HasPrefix(text, "*."):
		s.hosts = append(s.hosts, hostName{suffix(text[1:]), false})
	case strings.HasPrefix(text, "."):
		s.hosts = append(s.hosts, hostName{exact(text[1:]), true}, hostName{suffix(text), true})
	case strings.HasSuffix(text, ".*"):
		s.hosts = append(s.hosts, hostName{prefix(text[:len(text)-1]), false})
	default:
		s.hosts = append(s.hosts, hostName{exact(text), false})
	}
}

// isPlainName reports whether a name, apart from a star at an end, is a host in the normal form of rules.
func isPlainName(name string) bool {
	strange := func(r rune) bool { return r > '~' || strings.ContainsRune("$[]:/ ", r) }
	return !strings.ContainsFunc(name, strange) && !strings.HasSuffix(name, ".") && !strings.Contains(strings.Trim(name, "*"), "*")
}

// port is the choice of nginx at one port.
type port struct {
	number string
	hosts  choice // to the scope of a server in the list of all
	odd    string
}

// ports returns the ports of all servers, except those where every server answers all requests before limits are asked.
func ports(servers []*server) (all []port) {
	at := map[string]map[string][]int{} // servers by port and address
	asked := map[string]bool{}
	for i, s := range servers {
		for key, a := range s.addresses {
			if at[a.port] == nil {
				at[a.port] = map[string][]int{}
			}
			at[a.port][key] = append(at[a.port][key], i)
			asked[a.port] = asked[a.port] || !s.scopes[0].answers
		}
	}
	for _, number := range slices.Sorted(maps.Keys(at)) {
		if asked[number] {
			all = append(all, newPort(servers, number, at[number]))
		}
	}
	return all
}

// newPort returns how nginx chooses among the servers at a port, which are given by address.
func newPort(servers []*server, number string, at map[string][]int) port {
	p := port{number: number}
	for _, key := range slices.Sorted(maps.Keys(at)) {
		hosts, conflict := hostsOf(servers, at[key], key)
		same := func(a, b line) bool { return a.source == b.source && a.target == b.target }
		switch {
		case conflict != "":
			p.odd = "port " + number + ": nginx ignores the conflicting server name " + conflict
		case p.hosts != nil && !slices.EqualFunc(p.hosts, hosts, same):
			p.odd = "port " + number + " has several addresses with other servers, and rules do not know the address of a request"
		}
		p.hosts = hosts
		for _, i := range at[key] {
			if p.odd == "" {
				p.odd = servers[i].odd
			}
		}
	}
	return p
}

// hostsOf returns how nginx chooses a server at one address: by an exact name, the longest *.NAME, the longest NAME.*, the
// first regular expression, or the default.
func hostsOf(servers []*server, at []int, key string) (hosts choice, conflict string) {
	type named struct {
		hostName
		server string
	}
	var names []named
	fallback := at[0]
	for _, i := range slices.Backward(at) {
		if servers[i].addresses[key].isDefault {
			fallback = i
		}
	}
	for _, i := range at {
		for _, h := range servers[i].hosts {
			names = append(names, named{h, strconv.Itoa(i)})
		}
	}
	rank := map[form]int{exactly: 0, ending: 1, beginning: 2, matching: 3}
	slices.SortStableFunc(names, func(a, b named) int {
		if a.form == b.form && a.form != matching {
			return len(b.text) - len(a.text)
		}
		return rank[a.form] - rank[b.form]
	})
	for i, n := range names {
		if slices.ContainsFunc(names[:i], func(m named) bool { return m.source == n.source && (m.dotted || n.dotted) }) {
			conflict = n.source
		}
		hosts.add(n.pattern, n.server)
	}
	hosts.add(pattern{form: every}, strconv.Itoa(fallback))
	return hosts, conflict
}
