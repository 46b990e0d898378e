package redislimit

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// urlOptions are the options of a URL, by name.
var urlOptions = map[string]func(u *serverURL, name, value string) error{
	"batch":                  func(u *serverURL, name, value string) error { return count(&u.engine.Batch, name, value, maxBatch) },
	"flights":                func(u *serverURL, name, value string) error { return count(&u.engine.Flights, name, value, maxFlights) },
	"ca":                     (*serverURL).trust,
	"cert":                   (*serverURL).certificate,
	"client_name":            func(u *serverURL, _, value string) error { u.client.ClientName = value; return nil },
	"cluster":                (*serverURL).cluster,
	"db":                     (*serverURL).database,
	"deny_new_server":        func(u *serverURL, name, value string) error { return yes(&u.engine.DenyNewServer, name, value) },
	"key":                    (*serverURL).certificate,
	"lanes":                  func(u *serverURL, name, value string) error { return count(&u.engine.Lanes, name, value, maxLanes) },
	"linger":                 (*serverURL).linger,
	"one_slot":               func(u *serverURL, name, value string) error { return yes(&u.engine.OneSlot, name, value) },
	"password_env":           func(u *serverURL, name, value string) error { return fromEnv(&u.client.Password, name, value) },
	"password_file":          func(u *serverURL, name, value string) error { return fromFile(&u.client.Password, name, value) },
	"prefix":                 (*serverURL).prefix,
	"sentinel_password":      (*serverURL).ofSentinels,
	"sentinel_password_env":  (*serverURL).ofSentinels,
	"sentinel_password_file": (*serverURL).ofSentinels,
	"sentinel_username":      (*serverURL).ofSentinels,
	"server_name":            (*serverURL).overTLS,
	"skip_verify":            (*serverURL).overTLS,
	"timeout":                (*serverURL).timeout,
}

func wrongOption(format string, values ...any) error {
	return &URLError{"option", fmt.Sprintf(format, values...)}
}

func (u *serverURL) options() error {
	values, err := url.ParseQuery(u.query)
	if err != nil {
		return wrongOption("is badly percent-encoded")
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		read, known := urlOptions[name]
		if !known {
			what := fmt.Sprintf("%q is unknown", name)
			if values.Has("sentinel_password") { // an & in it would make the rest of it a name
				what = "besides sentinel_password is unknown: write an & in the password as %26"
			}
			return wrongOption("%s; there are %s", what, strings.Join(slices.Sorted(maps.Keys(urlOptions)), ", "))
		}
		if n := len(values[name]); n > 1 {
			return wrongOption("%s is given %d times", name, n)
		}
		if err := read(u, name, values.Get(name)); err != nil {
			return err
		}
	}
	if values.Has("cert") != values.Has("key") {
		return wrongOption("cert and key belong together: a certificate and its key")
	}
	if values.Has("cert") {
		return u.keyPair(values.Get("cert"), values.Get("key"))
	}
	return nil
}

// yes reads 0 or 1.
func yes(into *bool, name, value string) error {
	if value != "0" && value != "1" {
		return wrongOption("%s is %q, not 0 or 1", name, value)
	}
	*into = value == "1"
	return nil
}

// count reads a number from 1 to most.
func count(into *int, name, value string, most int) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > most {
		return wrongOption("%s is %q, not a number from 1 to %d", name, value, most)
	}
	*into = n
	return nil
}

// fromEnv reads a password from the environment, and fromFile from the first line of a file. Errors do not contain
// it.
func fromEnv(into *string, name, variable string) error {
	value, found := os.LookupEnv(variable)
	if !found || value == "" {
		return wrongOption("%s: %s is not set in the environment", name, variable)
	}
	return onePassword(into, name, value)
}

// maxFile bounds the files that an option names, in bytes.
const maxFile = 4 << 20

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	return text, err
}

func fromFile(into *string, name, path string) error {
	text, err := readFile(path)
	if err != nil {
		return wrongOption("%s: %v", name, err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return wrongOption("%s: the first line of %s is empty", name, path)
	}
	return onePassword(into, name, line)
}

func onePassword(into *string, name, password string) error {
	if *into != "" {
		return wrongOption("%s: the URL gives another password; give only one", name)
	}
	*into = password
	return nil
}

func (u *serverURL) ofSentinels(name, value string) error {
	if u.kind != urlSentinel {
		return wrongOption("%s is for redis-sentinel", name)
	}
	switch name {
	case "sentinel_username":
		u.client.Sentinel.Username = value
		return nil
	case "sentinel_password_env":
		return fromEnv(&u.client.Sentinel.Password, name, value)
	case "sentinel_password_file":
		return fromFile(&u.client.Sentinel.Password, name, value)
	}
	u.client.Sentinel.Password = value
	return nil
}

func (u *serverURL) overTLS(name, value string) error {
	if !u.tls {
		return wrongOption("%s is for TLS: rediss", name)
	}
	if name == "skip_verify" {
		return yes(&u.client.TLSConfig.InsecureSkipVerify, name, value)
	}
	u.client.TLSConfig.ServerName = value
	return nil
}

// trust reads the certificates that sign the server's certificate.
func (u *serverURL) trust(name, path string) error {
	if !u.tls {
		return wrongOption("%s is for TLS: rediss", name)
	}
	text, err := readFile(path)
	if err != nil {
		return wrongOption("%s: %v", name, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return wrongOption("%s: %s holds no PEM certificate", name, path)
	}
	u.client.TLSConfig.RootCAs = pool
	return nil
}

// certificate reads a certificate with its key; keyPair does so.
func (u *serverURL) certificate(name, _ string) error {
	if !u.tls {
		return wrongOption("%s is for TLS: rediss", name)
	}
	return nil
}

func (u *serverURL) keyPair(cert, key string) error {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return wrongOption("cert and key: %v", err)
	}
	u.client.TLSConfig.Certificates = []tls.Certificate{pair}
	return nil
}

func (u *serverURL) prefix(name, value string) error {
	if value == "" {
		return wrongOption("%s is empty", name)
	}
	if err := checkPrefix(value); err != nil {
		return wrongOption("%s is %v", name, err)
	}
	u.engine.Prefix = value
	return nil
}

func (u *serverURL) linger(name, value string) error {
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 {
		return wrongOption("%s is %q, not a duration like 1m", name, value)
	}
	u.engine.Linger = d
	return nil
}

func (u *serverURL) database(_, value string) error {
	if u.kind == urlCluster && value != "0" {
		return wrongOption("db is %q: a cluster has only database 0", value)
	}
	return u.selectDB(value)
}

const (
	// defaultTimeout closes a silent connection, unless the URL sets another.
	defaultTimeout = 3 * time.Second
	// minTimeout is the shortest timeout of a URL.
	minTimeout = 100 * time.Millisecond
)

func (u *serverURL) timeout(name, value string) error {
	d, err := time.ParseDuration(value)
	if err != nil || d < minTimeout {
		return wrongOption("%s is %q, not a duration of %v or more, like 2s", name, value, minTimeout)
	}
	setTimeout(&u.client, d)
	return nil
}

// setTimeout makes the client close a silent connection within d. The client sends a ping after one to two KeepAlives
// without an answer, and waits for a ConnWriteTimeout.
func setTimeout(client *rueidis.ClientOption, d time.Duration) {
	client.ConnWriteTimeout = d / 2
	client.Dialer.KeepAlive = d / 4
	client.Dialer.Timeout = d
}

func (u *serverURL) cluster(name, value string) error {
	var on bool
	if err := yes(&on, name, value); err != nil {
		return err
	}
	switch {
	case u.kind == urlSentinel || u.kind == urlSocket && on || u.kind == urlCluster && !on:
		return wrongOption("cluster is for redis and rediss, and the scheme says otherwise")
	case on:
		u.kind = urlCluster
	default:
		u.client.ForceSingleClient = true
	}
	return nil
}
