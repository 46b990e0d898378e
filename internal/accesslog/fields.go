package accesslog

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
)

// Slot is the place of a field that a Reader wants.
type Slot int

// field is a field by the name of a caller, and where a format may hold it, the best source first.
type field struct {
	name    string
	kind    kind
	sources []source
}

// kind says how the value of a field is made of that of its source.
type kind uint8

const (
	asItStands   kind = iota
	maybeAddress      // the key of an address, or the value as it stands
	clientKey         // the key of the client, as every front makes it
	clientAddress
	addressKey // the key of an address under another name
)

// source is a variable, and the function that takes the field out of its value, or nil for all of it.
type source struct {
	name  string
	take  func(value []byte) []byte
	query string // the variable with the query that belongs to the value; empty for none
}

// The names of the variables of formats. Names that may also mean a duration come last.
var (
	timeNames = []string{"time_local", "timestamp", "@timestamp", "time_iso8601", "msec", "StartUTC", "start_time", "date_time",
		"request_creation_time", "datetime", "log_time", "EdgeStartTimestamp", "EdgeEndTimestamp", "ts", "date", "time"}
	durationNames = []string{"msec", "date", "time"} // of timeNames: they may also hold a duration
	clientNames   = []string{"ip", "remote_addr", "remote_ip", "client_ip", "clientip", "request.client_ip", "request.remote_ip", "ClientHost",
		"c-ip", "client", "downstream_remote_address", "realip_remote_addr", "user_ip", "ClientIP", "httpRequest.remoteIp"}
	forwardedNames = []string{"http_x_forwarded_for", "x_forwarded_for", "request.headers.X-Forwarded-For.0", "request_X-Forwarded-For",
		"x-forwarded-for", "cs(X-Forwarded-For)", "X-Forwarded-For"}
	targetNames = []string{"uri", "request_uri", "url", "request.uri", "RequestPath", "ClientRequestURI", "httpRequest.requestUrl"}
)

// forwardedLines holds all lines of a field that a request may have several times.
const forwardedLines = "request.headers.X-Forwarded-For.*"

// allHeaders is present in a line that has all header fields of its request: the request did not have a field that the
// line lacks. Its value is that of a missing field, a dash.
const allHeaders = "request.headers.-"

// parameterOf returns the query parameter that a name is of, query.NAME or nginx's arg_NAME, or "".
func parameterOf(name string) string {
	for _, prefix := range []string{"query.", "arg_"} {
		if parameter, ok := strings.CutPrefix(name, prefix); ok {
			return parameter
		}
	}
	return ""
}

// parameterSources are the places of a parameter of the query. The first of several in a query counts, as in nginx.
func parameterSources(parameter string) []source {
	of := func(query func([]byte) []byte) func([]byte) []byte {
		return func(value []byte) []byte { return parameterIn(query(value), parameter) }
	}
	whole := func(query []byte) []byte { return query }
	return slices.Concat(taking(nil, "arg_"+parameter), taking(of(queryOf), targetNames...), taking(of(queryOfRequest), "request"),
		taking(of(whole), "query", "query_string", "args", "cs-uri-query"), taking(of(queryOf), "path"))
}

// dash is the value of a field that a request does not have.
var dash = []byte("-")

// parameterIn returns the value of a parameter, decoded, or a dash.
func parameterIn(query []byte, name string) []byte {
	if query == nil {
		return nil
	}
	for pair := range bytes.SplitSeq(query, []byte("&")) {
		key, value, valued := bytes.Cut(pair, []byte("="))
		if !valued {
			value = none
		}
		if string(key) == name || bytes.ContainsAny(key, "%+") && unescaped(key) == name {
			if bytes.ContainsAny(value, "%+") {
				return []byte(unescaped(value))
			}
			return value
		}
	}
	return dash
}

// unescaped returns a part of a query decoded, or as it stands if it is malformed.
func unescaped(text []byte) string {
	if decoded, err := url.QueryUnescape(string(text)); err == nil {
		return decoded
	}
	return string(text)
}

// fields are those that every format may have, with further names that callers use.
var fields = []struct {
	names   []string
	sources []source
}{
	{[]string{"user", "remote_user"}, plainly("user", "remote_user", "user_id", "ClientUsername", "cs-username")},
	{[]string{"method", "request_method"}, append(
		plainly("method", "request_method", "request.method", "RequestMethod", "cs-method", "ClientRequestMethod", "httpRequest.requestMethod"), source{name: "request", take: methodOf})},
	{[]string{"path"}, slices.Concat([]source{{name: "path", take: pathOf}}, taking(pathOf, targetNames...), plainly("cs-uri-stem", "ClientRequestPath"), taking(pathOfRequest, "request"))},
	{[]string{"query", "query_string"}, slices.Concat(plainly("query", "query_string", "args", "cs-uri-query"), taking(queryOf, targetNames...),
		[]source{{name: "request", take: queryOfRequest}, {name: "path", take: queryOf}})},
	{[]string{"uri", "request_uri"}, slices.Concat(taking(originForm, targetNames...), []source{{name: "request", take: uriOf}, {name: "cs-uri-stem", query: "cs-uri-query"}, {name: "path", query: "query"}})},
	{[]string{"status"}, plainly("status", "status_code", "DownstreamStatus", "response_code", "elb_status_code", "sc-status", "EdgeResponseStatus", "httpRequest.status")},
	{[]string{"referer", "referrer", "http_referer"}, plainly(
		"referer", "referrer", "http_referer", "request.headers.Referer.0", "request_Referer", "cs(Referer)", "ClientRequestReferer", "httpRequest.referer")},
	{[]string{"agent", "user_agent", "http_user_agent"}, plainly(
		"agent", "user_agent", "http_user_agent", "request.headers.User-Agent.0", "request_User-Agent", "cs(User-Agent)", "ClientRequestUserAgent", "httpRequest.userAgent")},
	{[]string{"host", "http_host"}, slices.Concat(taking(withoutPort, "vhost"), plainly(
		"host", "http_host", "request.host", "RequestHost", "authority", "server_name", "x-host-header", "cs(Host)", "cs-host", "ClientRequestHost"), taking(hostOf, "request"), taking(hostOfURL, "httpRequest.requestUrl"))},
}

// fieldOf returns the field of a name. It looks for the given name before any other.
func fieldOf(name string) field {
	switch {
	case name == "ip":
		return field{name: name, kind: clientKey}
	case name == "client":
		return field{name: name, kind: clientAddress}
	case slices.Contains(clientNames, name):
		return field{name, addressKey, plainly(name)}
	}
	if parameter := parameterOf(name); parameter != "" {
		return field{name: name, sources: append(plainly(name), parameterSources(parameter)...)}
	}
	header, isHeader := strings.CutPrefix(name, "header.")
	for _, known := range fields {
		if !slices.Contains(known.names, name) && !(isHeader && slices.Contains(known.names, strings.ReplaceAll(header, "-", "_"))) {
			continue
		}
		f := field{name: name}
		for _, s := range known.sources {
			if s.name == name {
				f.sources = slices.Insert(f.sources, 0, s)
			} else {
				f.sources = append(f.sources, s)
			}
		}
		if isHeader {
			f.sources = append(f.sources, plainly(allHeaders)...)
		}
		return f
	}
	if isHeader {
		return field{name: name, sources: headerSources(header)}
	}
	return field{name: name, sources: plainly(name)}
}

// keyOf returns the field of a name for a key: the value of a field that is called an address counts as that of a client does, and
// without its port, if it is one.
func keyOf(name string) field {
	f := fieldOf(name)
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == '_' || r == '-' })
	if last := words[max(len(words)-1, 0):]; f.kind == asItStands && len(last) > 0 {
		lower := strings.ToLower(last[0])
		if lower == "ip" || lower == "addr" || lower == "address" || strings.HasSuffix(last[0], "Ip") || strings.HasSuffix(last[0], "IP") || strings.HasSuffix(last[0], "Address") {
			f.kind = maybeAddress
		}
	}
	return f
}

// headerSources are the variables of a header field of the request.
func headerSources(name string) []source {
	words, small := strings.Split(strings.ToLower(name), "-"), headerVariable(name)
	for i, w := range words {
		if w != "" {
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	usual := strings.Join(words, "-")
	if usual == "X-Forwarded-For" {
		return plainly(forwardedNames...)
	}
	return plainly(small, "request.headers."+usual+".0", "request_"+usual, "cs("+usual+")", strings.TrimPrefix(small, "http_"), name, allHeaders)
}

// headerVariable is the variable of a header field of the request in the words of nginx.
func headerVariable(name string) string {
	return "http_" + strings.ReplaceAll(strings.ToLower(name), "-", "_")
}

func plainly(names ...string) []source { return taking(nil, names...) }

func taking(take func([]byte) []byte, names ...string) []source {
	sources := make([]source, len(names))
	for i, name := range names {
		sources[i] = source{name: name, take: take}
	}
	return sources
}

// methodOf returns the method of a request line.
func methodOf(line []byte) []byte {
	method, _ := splitRequest(line)
	return method
}

// uriOf returns the target of a request line.
func uriOf(line []byte) []byte {
	_, target := splitRequest(line)
	return originForm(target)
}

func pathOfRequest(line []byte) []byte  { return pathOf(uriOf(line)) }
func queryOfRequest(line []byte) []byte { return queryOf(uriOf(line)) }

// hostOf returns the host of a request line whose target is a whole URL.
func hostOf(line []byte) []byte {
	_, target := splitRequest(line)
	return hostOfURL(target)
}

// hostOfURL returns the host of a target that is a whole URL.
func hostOfURL(target []byte) []byte {
	host := target[:len(target)-len(originForm(target))]
	if _, after, ok := bytes.Cut(host, []byte("://")); ok {
		return withoutPort(after)
	}
	return nil
}

// splitRequest returns the method and the target of a request line.
func splitRequest(line []byte) (method, target []byte) {
	i := bytes.IndexByte(line, ' ')
	if i <= 0 {
		return nil, nil
	}
	method, target = line[:i], line[i+1:]
	if end := bytes.LastIndexByte(target, ' '); end >= 0 && bytes.HasPrefix(target[end+1:], []byte("HTTP/")) {
		target = target[:end]
	}
	return method, target
}

// originForm returns a target without scheme and host.
func originForm(target []byte) []byte {
	if len(target) == 0 || target[0] == '/' {
		return target
	}
	scheme, rest, ok := bytes.Cut(target, []byte("://"))
	if !ok || (string(scheme) != "http" && string(scheme) != "https") {
		return target
	}
	if i := bytes.IndexAny(rest, "/?"); i >= 0 {
		return rest[i:]
	}
	return none
}

func pathOf(target []byte) []byte {
	path, _, _ := bytes.Cut(originForm(target), []byte("?"))
	return path
}

// queryOf returns the query of a target, empty without one.
func queryOf(target []byte) []byte {
	if target == nil {
		return nil
	}
	if _, query, ok := bytes.Cut(target, []byte("?")); ok {
		return query
	}
	return none
}

func withoutPort(host []byte) []byte {
	if i := bytes.LastIndexByte(host, ':'); i >= 0 {
		return host[:i]
	}
	return host
}
