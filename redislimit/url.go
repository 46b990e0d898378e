package redislimit

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir/redislimit/internal/servers"
)

// ParseURL makes the options of a client from a URL:
//
//	redis://[USER[:PASSWORD]@]HOST[:PORT][/DB]          one server
//	redis-cluster://[USER[:PASSWORD]@]HOST[:PORT],…     a cluster, from any of its nodes
//	redis://HOST,…?cluster=1                            the same
//	redis-sentinel://[USER[:PASSWORD]@]HOST[:PORT],…/MASTER[/DB]
//	                                                    the master that sentinels know by that name
//	unix://[USER[:PASSWORD]@]/PATH                      one server, by its socket
//
// With rediss, rediss-cluster and rediss-sentinel it speaks TLS; valkey may
// stand for redis in each. PORT is 6379 if left out, for sentinels 26379.
// PASSWORD and other parts with special characters are percent-encoded.
//
// Options follow a question mark. Those of the client:
//
//	cluster=1 or 0             a cluster, or never look for one
//	client_name=NAME           as CLIENT LIST shows it
//	db=N                       the database, where the path does not name it
//	timeout=500ms              closes a connection that stays silent for this time, 100ms or more; default 3s
//	password_file=FILE         the password is the first line of a file
//	password_env=NAME          the password is in the environment
//	sentinel_username, sentinel_password, sentinel_password_file, sentinel_password_env
//	                           of the sentinels, if they require one
//	ca=FILE                    trust the certificates in a PEM file, and no others
//	cert=FILE, key=FILE        the client's certificate and its key, in PEM files
//	server_name=NAME           the name in the server's certificate
//	skip_verify=1              accept any certificate
//
// The client closes a connection that stays silent for the timeout. Its calls then fail with an [Error] of the reason
// Lost, if their contexts allow them to wait longer.
//
// Those of the engine, which [Options] describes: prefix, lanes, batch, one_slot=1, deny_new_server=1 and linger.
// ParseURL returns them beside those of the client, with zeros for the others.
//
// An error is a [*URLError], and never holds a password.
func ParseURL(text string) (rueidis.ClientOption, Options, error) {
	u, err := splitURL(text)
	if err != nil {
		return rueidis.ClientOption{}, Options{}, err
	}
	u.client.DisableCache = true // what is read here, a script reads
	setTimeout(&u.client, defaultTimeout)
	for _, read := range []func() error{u.user, u.hosts, u.options, u.place} {
		if err := read(); err != nil {
			return rueidis.ClientOption{}, Options{}, err
		}
	}
	return u.client, u.engine, nil
}

// HasPassword reports whether a URL contains a password, which every user of a machine can read in the arguments of
// a program.
func HasPassword(text string) bool {
	u, err := splitURL(text)
	if err != nil {
		return false
	}
	_, password, _ := strings.Cut(u.userinfo, ":")
	values, _ := url.ParseQuery(u.query)
	return password != "" || values.Has("sentinel_password")
}

// URLError reports an invalid part of a URL.
type URLError struct {
	Part   string // scheme, user, host, path, database, master or option
	Reason string
}

func (e *URLError) Error() string { return "redislimit: URL: " + e.Part + " " + e.Reason }

// urlKind is the kind of server that a URL names.
type urlKind int

const (
	urlServer urlKind = iota
	urlCluster
	urlSentinel
	urlSocket
)

// urlSchemes are the schemes of ParseURL, without the family's name and the s for TLS.
var urlSchemes = map[string]urlKind{"": urlServer, "-cluster": urlCluster, "-sentinel": urlSentinel}

// serverURL is a parsed URL. net/url does not accept a list of hosts.
type serverURL struct {
	kind      urlKind
	tls       bool
	userinfo  string
	authority string // the hosts
	path      string
	query     string

	client rueidis.ClientOption // the options read so far
	engine Options
}

func splitURL(text string) (*serverURL, error) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		return nil, &URLError{"scheme", "is missing; a URL is redis://HOST:PORT"}
	}
	u := &serverURL{}
	if err := u.scheme(scheme); err != nil {
		return nil, err
	}
	if strings.Contains(rest, "#") {
		return nil, &URLError{"fragment", "has no meaning here; encode # as %23"}
	}
	rest, u.query, _ = strings.Cut(rest, "?")
	rest, u.path, _ = strings.Cut(rest, "/")
	u.authority = rest
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		u.userinfo, u.authority = rest[:i], rest[i+1:]
	}
	if strings.ContainsRune(u.path+u.query, '@') { // an error would show part of the password
		return nil, &URLError{"user", "or password has a / or ? that is not percent-encoded, or an @ after the hosts is not"}
	}
	return u, nil
}

func (u *serverURL) scheme(scheme string) error {
	lower := strings.ToLower(scheme)
	if lower == "unix" {
		u.kind = urlSocket
		return nil
	}
	for _, family := range []string{"redis", "valkey"} {
		rest, found := strings.CutPrefix(lower, family)
		if !found {
			continue
		}
		withoutS, secure := strings.CutPrefix(rest, "s")
		if kind, known := urlSchemes[withoutS]; known {
			u.kind, u.tls = kind, secure
			return nil
		}
	}
	return &URLError{"scheme", fmt.Sprintf("%q is not redis, redis-cluster or redis-sentinel, or one of them with TLS: rediss, rediss-cluster, rediss-sentinel; or unix", scheme)}
}

func (u *serverURL) user() (err error) {
	name, password, _ := strings.Cut(u.userinfo, ":")
	if u.client.Username, err = url.PathUnescape(name); err != nil {
		return &URLError{"user", "is badly percent-encoded"}
	}
	if u.client.Password, err = url.PathUnescape(password); err != nil {
		return &URLError{"password", "is badly percent-encoded"}
	}
	return nil
}

func (u *serverURL) hosts() error {
	if u.kind == urlSocket {
		return u.socket()
	}
	hosts := strings.Split(u.authority, ",")
	for i, host := range hosts {
		address, err := u.address(host)
		if err != nil {
			return &URLError{"host", fmt.Sprintf("%d of %d %v", i+1, len(hosts), err)}
		}
		u.client.InitAddress = append(u.client.InitAddress, address)
	}
	if u.tls {
		u.client.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return nil
}

// address returns HOST:PORT for HOST or HOST:PORT. An IPv6 address needs brackets.
func (u *serverURL) address(text string) (string, error) {
	host, port := text, ""
	if i := strings.LastIndexByte(text, ':'); i > strings.LastIndexByte(text, ']') {
		host, port = text[:i], text[i+1:]
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "", fmt.Errorf("has port %q, not a number from 1 to 65535", port)
		}
	}
	bare := host
	if inner, found := strings.CutPrefix(host, "["); found {
		if bare, found = strings.CutSuffix(inner, "]"); !found || net.ParseIP(bare) == nil {
			return "", fmt.Errorf("%q is not an IPv6 address in brackets", host)
		}
	} else if strings.ContainsAny(host, ":[] ") {
		return "", fmt.Errorf("%q is not a name or address; an IPv6 address has brackets", host)
	}
	switch {
	case bare == "":
		return "", fmt.Errorf("is empty")
	case port == "" && u.kind == urlSentinel:
		port = "26379"
	case port == "":
		port = "6379"
	}
	return net.JoinHostPort(bare, port), nil
}

// place reads the path: a database, the master of sentinels, or both.
func (u *serverURL) place() error {
	path := strings.TrimSuffix(u.path, "/")
	switch {
	case u.kind == urlCluster && path != "" && path != "0":
		return &URLError{"database", fmt.Sprintf("%q: a cluster has only database 0", path)}
	case u.kind == urlServer && len(u.client.InitAddress) > 1:
		return &URLError{"host", fmt.Sprintf("lists %d hosts, but one server has one; for a cluster use redis-cluster://, or end the URL with ?cluster=1", len(u.client.InitAddress))}
	case u.kind == urlSentinel:
		return u.sentinel(path)
	}
	return u.selectDB(path)
}

// sentinelRefresh is how often a Sentinel client asks for the master, in case it has missed a change.
const sentinelRefresh = 5 * time.Second

func (u *serverURL) sentinel(path string) error {
	escaped, db, _ := strings.Cut(path, "/")
	name, err := url.PathUnescape(escaped)
	if err != nil || name == "" {
		return &URLError{"master", "is missing, or badly percent-encoded; it is the first part of the path: redis-sentinel://HOST/MASTER"}
	}
	u.client.Sentinel.MasterSet = name
	u.client.Sentinel.TLSConfig = u.client.TLSConfig
	u.client.Sentinel.TopologyRefreshInterval = sentinelRefresh
	return u.selectDB(db)
}

// selectDB chooses the database, unless text is empty.
func (u *serverURL) selectDB(text string) (err error) {
	if text == "" {
		return nil
	}
	if u.client.SelectDB, err = strconv.Atoi(text); err != nil || u.client.SelectDB < 0 {
		return &URLError{"database", fmt.Sprintf("%q is not a number", text)}
	}
	return nil
}

// socket is the path of a server's socket.
func (u *serverURL) socket() error {
	path, err := url.PathUnescape(u.path)
	if u.authority != "" || path == "" || err != nil {
		return &URLError{"path", "names no socket; use unix:///PATH"}
	}
	u.client.InitAddress = []string{"/" + path}
	u.client.ForceSingleClient = true
	u.client.DialCtxFn = servers.DialServer
	u.path = ""
	return nil
}
