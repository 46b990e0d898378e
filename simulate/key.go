package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Key names the fields of a line that identify a key of the traffic.
//
// Every format has these fields: ip, method, path (without the query), query, uri (path and query), status, user,
// referer, agent, host. Any other name is a field of JSON lines. A path with dots names a nested field:
// request.headers.Host.0. The ip is the key that every front gives a client: an IPv4 address, or the network of an IPv6
// address. In a key of several fields, a value is quoted if it is empty or contains a space, so the
// values stay distinct.
type Key struct {
	fields []field
}

// field is one part of a key: its name, its column of a combined line, and where a JSON line may hold it, the best
// source first.
type field struct {
	name    string
	column  column
	sources []source
}

const maxFields = 16

// ParseKey reads names of fields. Each text holds one name, or several separated by commas.
func ParseKey(texts ...string) (Key, error) {
	var key Key
	for _, text := range texts {
		for name := range strings.SplitSeq(text, ",") {
			f := newField(strings.TrimSpace(name))
			if f.name == "" {
				return Key{}, fmt.Errorf("simulate: key %q: a field has no name", text)
			}
			if slices.ContainsFunc(key.fields, func(other field) bool { return other.name == f.name }) {
				return Key{}, fmt.Errorf("simulate: key %q: field %s occurs twice", text, f.name)
			}
			key.fields = append(key.fields, f)
		}
	}
	switch n := len(key.fields); {
	case n == 0:
		return Key{}, errors.New("simulate: key: names no field")
	case n > maxFields:
		return Key{}, fmt.Errorf("simulate: key: %d fields, more than %d", n, maxFields)
	}
	return key, nil
}

// String returns the names of the fields, separated by commas.
func (k Key) String() string {
	names := make([]string, len(k.fields))
	for i, f := range k.fields {
		names[i] = f.name
	}
	return strings.Join(names, ",")
}

// column is a field that every format has, in the order of a combined line.
type column int

const (
	columnOther column = iota
	columnHost
	columnIP
	columnUser
	columnMethod
	columnPath
	columnQuery
	columnURI
	columnStatus
	columnReferer
	columnAgent
)

// source is a field of JSON lines and the kind of its value.
type source struct {
	name string
	kind kind
}

type kind int

const (
	plain   kind = iota
	target       // a path with an optional query
	request      // a request line: GET /path?query HTTP/1.1
)

// targets are the JSON fields that hold a path with its query: nginx's variables, Caddy, Traefik and common custom
// names.
var targets = []source{
	{"uri", target}, {"request_uri", target}, {"url", target}, {"request.uri", target}, {"RequestPath", target},
	{"request", request},
}

// clientNames are the fields that hold the address of the client.
var clientNames = []string{
	"ip", "remote_addr", "remote_ip", "client_ip", "clientip", "request.client_ip", "request.remote_ip", "ClientHost",
}

// knownFields are the fields that every format has, with all their names.
var knownFields = []struct {
	column  column
	names   []string
	sources []source
}{
	{columnIP, clientNames, plainly(clientNames...)},
	{columnUser, []string{"user", "remote_user"}, plainly("user", "remote_user", "user_id", "ClientUsername")},
	{columnMethod, []string{"method", "request_method"}, append(
		plainly("method", "request_method", "request.method", "RequestMethod"), source{"request", request})},
	{columnPath, []string{"path"}, slices.Concat([]source{{"path", target}}, targets)},
	{columnQuery, []string{"query", "query_string"}, slices.Concat(plainly("query", "query_string", "args"), targets)},
	{columnURI, []string{"uri", "request_uri"}, slices.Concat(targets, []source{{"path", target}})},
	{columnStatus, []string{"status"}, plainly("status", "status_code", "DownstreamStatus")},
	{columnReferer, []string{"referer", "referrer", "http_referer"}, plainly(
		"referer", "referrer", "http_referer", "request.headers.Referer.0")},
	{columnAgent, []string{"agent", "user_agent", "http_user_agent"}, plainly(
		"agent", "user_agent", "http_user_agent", "request.headers.User-Agent.0")},
	{columnHost, []string{"host", "http_host"}, plainly("host", "http_host", "request.host", "RequestHost")},
}

func plainly(names ...string) []source {
	sources := make([]source, len(names))
	for i, name := range names {
		sources[i] = source{name, plain}
	}
	return sources
}

// newField returns the field of a name. In JSON lines it looks for the given name before any alias.
func newField(name string) field {
	for _, known := range knownFields {
		if !slices.Contains(known.names, name) {
			continue
		}
		f := field{name: name, column: known.column}
		for _, p := range known.sources {
			if p.name == name {
				f.sources = slices.Insert(f.sources, 0, p)
			} else {
				f.sources = append(f.sources, p)
			}
		}
		return f
	}
	return field{name: name, sources: plainly(name)}
}
