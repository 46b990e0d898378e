package redislimit

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// ParseURL makes the options of a client from a URL:
//
//	redis://[USER[:PASSWORD]@]HOST[:PORT][/DB]          one server
//	redis-cluster://[USER[:PASSWORD]@]HOST[:PORT],…     a cluster, from any of its nodes
//	redis://HOST,…?cluster=1                            the same
//	redis-sentinel://[USER[:PASSWORD]@]HOST[:PORT],…/MASTER[/DB]
//	                                                    the master that sentinels know by that name
//
// With rediss, rediss-cluster and rediss-sentinel it speaks TLS; valkey may
// stand for redis in each. PORT is 6379 if left out, for sentinels 26379.
// PASSWORD and other parts with special characters are percent-encoded.
//
// Options follow a question mark: cluster (1, or 0 never to look for one),
// client_name, skip_verify (1 accepts any certificate), sentinel_username and
// sentinel_password (of the sentinels, where they ask for one), and timeout, for how
// long a server may fail to answer, like 500ms: by then a connection that is
// silent is given up, and what was asked on it is an [Error] with the reason Lost,
// for callers whose context would let them wait longer. Without it, that is
// [DefaultTimeout].
//
// An error is a [*URLError], and never holds a password.
func ParseURL(text string) (rueidis.ClientOption, error) {
	option := rueidis.ClientOption{DisableCache: true} // what is read here, a script reads
	setTimeout(&option, DefaultTimeout)
	u, err := splitURL(text)
	if err != nil {
		return rueidis.ClientOption{}, err
	}
	for _, read := range []func(*rueidis.ClientOption) error{u.user, u.hosts, u.options, u.place} {
		if err := read(&option); err != nil {
			return rueidis.ClientOption{}, err
		}
	}
	return option, nil
}

// URLError says which part of a URL names no server.
type URLError struct {
	Part   string // scheme, user, host, path, database, master or option
	Reason string
}

func (e *URLError) Error() string { return "redislimit: URL: " + e.Part + " " + e.Reason }

// urlKind is what a URL leads to.
type urlKind int

const (
	urlServer urlKind = iota
	urlCluster
	urlSentinel
)

// urlSchemes are those that ParseURL reads, without the family's name and the s
// for TLS.
var urlSchemes = map[string]urlKind{"": urlServer, "-cluster": urlCluster, "-sentinel": urlSentinel}

// serverURL is a URL in parts. net/url takes no list of hosts.
type serverURL struct {
	kind      urlKind
	tls       bool
	userinfo  string
	authority string // the hosts
	path      string
	query     string
}

func splitURL(text string) (*serverURL, error) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		return nil, &URLError{"scheme", "is missing; a URL reads redis://HOST:PORT"}
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
	} else if strings.ContainsRune(u.path+u.query, '@') { // errors would show some of the password
		return nil, &URLError{"user", "or password has a / or ? that is not percent-encoded, or an @ after the hosts is not"}
	}
	return u, nil
}

func (u *serverURL) scheme(scheme string) error {
	lower := strings.ToLower(scheme)
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
	return &URLError{"scheme", fmt.Sprintf("%q is not redis, redis-cluster or redis-sentinel, or one of them with TLS: rediss, rediss-cluster, rediss-sentinel", scheme)}
}

func (u *serverURL) user(option *rueidis.ClientOption) (err error) {
	name, password, _ := strings.Cut(u.userinfo, ":")
	if option.Username, err = url.PathUnescape(name); err != nil {
		return &URLError{"user", "is badly percent-encoded"}
	}
	if option.Password, err = url.PathUnescape(password); err != nil {
		return &URLError{"password", "is badly percent-encoded"}
	}
	return nil
}

func (u *serverURL) hosts(option *rueidis.ClientOption) error {
	hosts := strings.Split(u.authority, ",")
	for i, host := range hosts {
		address, err := u.address(host)
		if err != nil {
			return &URLError{"host", fmt.Sprintf("%d of %d %v", i+1, len(hosts), err)}
		}
		option.InitAddress = append(option.InitAddress, address)
	}
	if u.tls {
		option.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return nil
}

// address is HOST:PORT of HOST or HOST:PORT. An IPv6 address has brackets.
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

func (u *serverURL) options(option *rueidis.ClientOption) error {
	values, err := url.ParseQuery(u.query)
	if err != nil {
		return &URLError{"option", "is badly percent-encoded"}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if n := len(values[name]); n > 1 {
			return &URLError{"option", fmt.Sprintf("%s is given %d times", name, n)}
		}
		if err := u.option(option, name, values.Get(name)); err != nil {
			return err
		}
	}
	return nil
}

func (u *serverURL) option(option *rueidis.ClientOption, name, value string) error {
	on, isBool := map[string]bool{"0": false, "1": true}[value]
	switch {
	case name == "client_name":
		option.ClientName = value
	case name == "timeout":
		return timeout(option, value)
	case name == "sentinel_username" && u.kind == urlSentinel:
		option.Sentinel.Username = value
	case name == "sentinel_password" && u.kind == urlSentinel:
		option.Sentinel.Password = value
	case name == "sentinel_username" || name == "sentinel_password":
		return &URLError{"option", name + " is for redis-sentinel"}
	case name != "cluster" && name != "skip_verify":
		return &URLError{"option", fmt.Sprintf("%q is unknown; there are client_name, cluster, sentinel_password, sentinel_username, skip_verify and timeout", name)}
	case !isBool:
		return &URLError{"option", fmt.Sprintf("%s is %q, not 0 or 1", name, value)}
	case name == "skip_verify" && !u.tls:
		return &URLError{"option", "skip_verify is for TLS: rediss"}
	case name == "skip_verify":
		option.TLSConfig.InsecureSkipVerify = on
	default:
		return u.cluster(option, on)
	}
	return nil
}

const (
	// DefaultTimeout is how long a server may fail to answer, if the URL does not
	// say it.
	DefaultTimeout = 3 * time.Second
	// MinTimeout is the least that a URL may say.
	MinTimeout = 100 * time.Millisecond
)

func timeout(option *rueidis.ClientOption, text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < MinTimeout {
		return &URLError{"option", fmt.Sprintf("timeout is %q, not a duration of %v or more, like 2s", text, MinTimeout)}
	}
	setTimeout(option, d)
	return nil
}

// setTimeout has the client give up a silent connection within d. It finds out
// by a ping: that goes out when nothing came for one to two KeepAlives, and is
// given a ConnWriteTimeout.
func setTimeout(option *rueidis.ClientOption, d time.Duration) {
	option.ConnWriteTimeout = d / 2
	option.Dialer.KeepAlive = d / 4
	option.Dialer.Timeout = d
}

func (u *serverURL) cluster(option *rueidis.ClientOption, on bool) error {
	switch {
	case u.kind == urlSentinel || u.kind == urlCluster && !on:
		return &URLError{"option", "cluster is for redis and rediss, and the scheme says otherwise"}
	case on:
		u.kind = urlCluster
	default:
		option.ForceSingleClient = true
	}
	return nil
}

// place is what the path names: a database, the master of sentinels, or both.
func (u *serverURL) place(option *rueidis.ClientOption) error {
	path := strings.TrimSuffix(u.path, "/")
	switch {
	case u.kind == urlCluster && path != "" && path != "0":
		return &URLError{"database", fmt.Sprintf("%q: a cluster has only database 0", path)}
	case u.kind == urlServer && len(option.InitAddress) > 1:
		return &URLError{"host", fmt.Sprintf("1 of %d is one too many for one server; a cluster reads redis-cluster://, or ends in ?cluster=1", len(option.InitAddress))}
	case u.kind == urlSentinel:
		return u.sentinel(option, path)
	}
	return selectDB(option, path)
}

// sentinelRefresh is how often a client of sentinels asks them who the master is,
// should it have missed the news.
const sentinelRefresh = 5 * time.Second

func (u *serverURL) sentinel(option *rueidis.ClientOption, path string) error {
	escaped, db, _ := strings.Cut(path, "/")
	name, err := url.PathUnescape(escaped)
	if err != nil || name == "" {
		return &URLError{"master", "is missing, or badly percent-encoded; it is the first part of the path: redis-sentinel://HOST/MASTER"}
	}
	option.Sentinel.MasterSet = name
	option.Sentinel.TLSConfig = option.TLSConfig
	option.Sentinel.TopologyRefreshInterval = sentinelRefresh
	return selectDB(option, db)
}

func selectDB(option *rueidis.ClientOption, text string) (err error) {
	if text == "" {
		return nil
	}
	if option.SelectDB, err = strconv.Atoi(text); err != nil || option.SelectDB < 0 {
		return &URLError{"database", fmt.Sprintf("%q is not a number", text)}
	}
	return nil
}
