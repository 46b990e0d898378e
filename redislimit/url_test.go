package redislimit

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

func TestURLNamesServersAndHowToReachThem(t *testing.T) {
	tests := []struct{ url, want string }{
		{"redis://localhost", "[localhost:6379]"},
		{"redis://127.0.0.1:7000/3", "[127.0.0.1:7000] db 3"},
		{"redis://localhost/", "[localhost:6379]"},
		{"REDIS://localhost", "[localhost:6379]"},
		{"valkey://localhost", "[localhost:6379]"},
		{"redis://[::1]:7000", "[[::1]:7000]"},
		{"redis://[::1]", "[[::1]:6379]"},
		{"redis://:secret@localhost", "[localhost:6379] password secret"},
		{"redis://weir:se%40cr%2Fet@localhost", "[localhost:6379] user weir password se@cr/et"},
		{"redis://weir:s@e@localhost", "[localhost:6379] user weir password s@e"},
		{"redis://localhost?client_name=front&cluster=0", "[localhost:6379] name front, never a cluster"},
		{"rediss://redis.example:7000", "[redis.example:7000] TLS"},
		{"valkeys://redis.example?skip_verify=1", "[redis.example:6379] TLS unverified"},
		{"rediss://redis.example?skip_verify=0", "[redis.example:6379] TLS"},
		{"redis://a:1,b:2?cluster=1", "[a:1 b:2]"},
		{"redis-cluster://a:1,b,[::1]:3", "[a:1 b:6379 [::1]:3]"},
		{"redis-cluster://a/0", "[a:6379]"},
		{"rediss-cluster://weir:x@a,b", "[a:6379 b:6379] user weir password x TLS"},
		{"redis-sentinel://a,b:7000/main", "[a:26379 b:7000] master main"},
		{"redis-sentinel://weir:x@a/main/2?sentinel_username=s&sentinel_password=p%20q", "[a:26379] user weir password x db 2 master main, sentinels user s password p q"},
		{"unix:///run/redis%20x.sock?db=2", "[/run/redis x.sock] db 2, never a cluster"},
		{"unix://weir:secret@/run/redis.sock", "[/run/redis.sock] user weir password secret, never a cluster"},
		{"redis://weir@a?password_env=WEIR_TEST_PASSWORD", "[a:6379] user weir password from env"},
		{"redis-sentinel://a/main?sentinel_password_env=WEIR_TEST_PASSWORD", "[a:26379] master main, sentinels user  password from env"},
		{"rediss://10.0.0.1?server_name=redis.example", "[10.0.0.1:6379] TLS of redis.example"},
		{"rediss-sentinel://a/my%20main", "[a:26379] TLS master my main over TLS"},
	}
	t.Setenv("WEIR_TEST_PASSWORD", "from env")
	for _, tt := range tests {
		option, _, err := ParseURL(tt.url)
		if err != nil {
			t.Errorf("ParseURL(%q): %v", tt.url, err)
			continue
		}
		if got := describe(option); got != tt.want {
			t.Errorf("ParseURL(%q) = %s, want %s", tt.url, got, tt.want)
		}
	}
}

func TestURLBoundsHowLongAServerMayBeSilent(t *testing.T) {
	for url, want := range map[string]time.Duration{
		"redis://a": defaultTimeout, "redis-cluster://a,b": defaultTimeout, "redis-sentinel://a/main?timeout=100ms": 100 * time.Millisecond, "redis://a?timeout=2s": 2 * time.Second,
	} {
		option, _, err := ParseURL(url)
		if err != nil || option.ConnWriteTimeout+2*option.Dialer.KeepAlive > want || option.ConnWriteTimeout <= 0 || option.Dialer.Timeout != want {
			t.Errorf("ParseURL(%q): got %v to write, pings after %v, %v to dial and error %v, want a silent connection found within %v", url, option.ConnWriteTimeout, option.Dialer.KeepAlive, option.Dialer.Timeout, err, want)
		}
	}
}

// describe returns the options as text, as far as a URL can express them.
func describe(o rueidis.ClientOption) string {
	words := []string{fmt.Sprint(o.InitAddress)}
	add := func(when bool, text string) {
		if when {
			words = append(words, text)
		}
	}
	add(o.Username != "", "user "+o.Username)
	add(o.Password != "", "password "+o.Password)
	add(o.SelectDB != 0, fmt.Sprint("db ", o.SelectDB))
	add(o.ClientName != "", "name "+o.ClientName)
	add(o.TLSConfig != nil, "TLS")
	add(o.TLSConfig != nil && o.TLSConfig.InsecureSkipVerify, "unverified")
	add(o.TLSConfig != nil && o.TLSConfig.ServerName != "", serverName(o))
	add(o.Sentinel.MasterSet != "", "master "+o.Sentinel.MasterSet)
	add(o.Sentinel.TLSConfig != nil, "over TLS")
	text := strings.Join(words, " ")
	if o.ForceSingleClient {
		text += ", never a cluster"
	}
	if o.Sentinel.Password != "" {
		text += ", sentinels user " + o.Sentinel.Username + " password " + o.Sentinel.Password
	}
	return text
}

func serverName(o rueidis.ClientOption) string {
	if o.TLSConfig == nil {
		return ""
	}
	return "of " + o.TLSConfig.ServerName
}

func TestURLConfiguresTheEngine(t *testing.T) {
	for url, want := range map[string]Options{
		"redis://a": {},
		"redis://a?prefix=shop&lanes=16&batch=64&one_slot=1&deny_new_server=1&linger=1m": {Prefix: "shop", Lanes: 16, Batch: 64, OneSlot: true, DenyNewServer: true, Linger: time.Minute},
		"redis://a?one_slot=0": {},
	} {
		if _, got, err := ParseURL(url); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("ParseURL(%q): options %+v and %v, want %+v", url, got, err, want)
		}
	}
	said, base := Options{Prefix: "url", Lanes: 3}, Options{Prefix: "program", Batch: 7, DenyNewServer: true}
	if got, want := said.over(base), (Options{Prefix: "url", Lanes: 3, Batch: 7, DenyNewServer: true}); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v over %+v = %+v, want %+v", said, base, got, want)
	}
}

func TestHoldsPasswordFindsThoseSpelledOut(t *testing.T) {
	for url, want := range map[string]bool{
		"redis://a": false, "redis://weir@a": false, "redis://weir:@a": false, "redis://:x@a": true, "unix://u:x@/sock": true, "nonsense": false,
		"redis://a?password_file=/x": false, "redis-sentinel://a/m?sentinel_password=x": true, "redis-sentinel://a/m?sentinel_password_env=x": false,
	} {
		if got := HasPassword(url); got != want {
			t.Errorf("HasPassword(%q) = %t, want %t", url, got, want)
		}
	}
}

func TestURLErrorsNameThePart(t *testing.T) {
	tests := []struct{ url, want string }{
		{"", "scheme is missing; a URL is redis://HOST:PORT"},
		{"localhost:6379", "scheme is missing; a URL is redis://HOST:PORT"},
		{"http://localhost", `scheme "http" is not redis, redis-cluster or redis-sentinel, or one of them with TLS: rediss, rediss-cluster, rediss-sentinel; or unix`},
		{"redis+unix://localhost", `scheme "redis+unix" is not redis, redis-cluster or redis-sentinel, or one of them with TLS: rediss, rediss-cluster, rediss-sentinel; or unix`},
		{"redis://", "host 1 of 1 is empty"},
		{"redis://:6379", "host 1 of 1 is empty"},
		{"redis-cluster://a,,b", "host 2 of 3 is empty"},
		{"redis://a:70000", `host 1 of 1 has port "70000", not a number from 1 to 65535`},
		{"redis://a:0", `host 1 of 1 has port "0", not a number from 1 to 65535`},
		{"redis-cluster://a,b:x", `host 2 of 2 has port "x", not a number from 1 to 65535`},
		{"redis://::1", `host 1 of 1 ":" is not a name or address; an IPv6 address has brackets`},
		{"redis://[::1", `host 1 of 1 "[:" is not an IPv6 address in brackets`},
		{"redis://[host]:1", `host 1 of 1 "[host]" is not an IPv6 address in brackets`},
		{"redis://a,b", "host lists 2 hosts, but one server has one; for a cluster use redis-cluster://, or end the URL with ?cluster=1"},
		{"redis://a/x", `database "x" is not a number`},
		{"redis://a/-1", `database "-1" is not a number`},
		{"redis://a/1/2", `database "1/2" is not a number`},
		{"redis-cluster://a/1", `database "1": a cluster has only database 0`},
		{"redis-sentinel://a", "master is missing, or badly percent-encoded; it is the first part of the path: redis-sentinel://HOST/MASTER"},
		{"redis-sentinel://a/main/x", `database "x" is not a number`},
		{"redis-sentinel://a/main?cluster=1", "option cluster is for redis and rediss, and the scheme says otherwise"},
		{"redis-cluster://a?cluster=0", "option cluster is for redis and rediss, and the scheme says otherwise"},
		{"redis://a?cluster=yes", `option cluster is "yes", not 0 or 1`},
		{"redis://a?cluster=1&cluster=1", "option cluster is given 2 times"},
		{"redis://a?skip_verify=1", "option skip_verify is for TLS: rediss"},
		{"redis://a?sentinel_password=x", "option sentinel_password is for redis-sentinel"},
		{"redis://a?bd=1", `option "bd" is unknown; there are batch, ca, cert, client_name, cluster, db, deny_new_server, flights, key, lanes, linger, one_slot, password_env, password_file, prefix, sentinel_password, sentinel_password_env, sentinel_password_file, sentinel_username, server_name, skip_verify, timeout`},
		{"redis://a?db=x", `database "x" is not a number`},
		{"redis-cluster://a?db=1", `option db is "1": a cluster has only database 0`},
		{"unix://", "path names no socket; use unix:///PATH"},
		{"unix://host/path", "path names no socket; use unix:///PATH"},
		{"unix:///path?cluster=1", "option cluster is for redis and rediss, and the scheme says otherwise"},
		{"redis://a?ca=/x", "option ca is for TLS: rediss"},
		{"redis://a?cert=/x&key=/y", "option cert is for TLS: rediss"},
		{"redis://a?server_name=x", "option server_name is for TLS: rediss"},
		{"rediss://a?cert=/x", "option cert and key belong together: a certificate and its key"},
		{"rediss://a?ca=/no/such", "option ca: open /no/such: no such file or directory"},
		{"rediss://a?cert=/no/such&key=/y", "option cert and key: open /no/such: no such file or directory"},
		{"redis://a?password_file=/no/such", "option password_file: open /no/such: no such file or directory"},
		{"redis://a?password_env=WEIR_NO_SUCH", "option password_env: WEIR_NO_SUCH is not set in the environment"},
		{"redis://:x@a?password_env=PATH", "option password_env: the URL gives another password; give only one"},
		{"redis://a?sentinel_password_env=PATH", "option sentinel_password_env is for redis-sentinel"},
		{"redis://a?lanes=0", `option lanes is "0", not a number from 1 to 16384`},
		{"redis://a?batch=1025", `option batch is "1025", not a number from 1 to 1024`},
		{"redis://a?prefix=a{b}", `option prefix is "a{b}", which has other characters than ASCII letters, digits and -._~:/@+=,`},
		{"redis://a?linger=-1s", `option linger is "-1s", not a duration like 1m`},
		{"redis://a?one_slot=yes", `option one_slot is "yes", not 0 or 1`},
		{"redis://a?timeout=5", `option timeout is "5", not a duration of 100ms or more, like 2s`},
		{"redis://a?timeout=99ms", `option timeout is "99ms", not a duration of 100ms or more, like 2s`},
		{"redis://a?timeout=1s&timeout=2s", "option timeout is given 2 times"},
		{"redis://a?x=%zz", "option is badly percent-encoded"},
		{"redis://u%zz@a", "user is badly percent-encoded"},
		{"redis://u:%zz@a", "password is badly percent-encoded"},
		{"redis://a#main", "fragment has no meaning here; encode # as %23"},
	}
	for _, tt := range tests {
		_, _, err := ParseURL(tt.url)
		if err == nil || err.Error() != "redislimit: URL: "+tt.want {
			t.Errorf("ParseURL(%q): error %v, want redislimit: URL: %s", tt.url, err, tt.want)
		}
		if _, ok := errors.AsType[*URLError](err); !ok {
			t.Errorf("ParseURL(%q): error of type %T, want *URLError", tt.url, err)
		}
	}
}

// Each password contains hunter2. Some have characters that should have been encoded, and that end the part too
// early.
func TestURLErrorsNeverHoldAPassword(t *testing.T) {
	for _, url := range []string{
		"redis://u:hunter2@", "redis://u:hunter2@a:x", "redis://u:hunter2@a?no=1", "redis://u:hunter2/1@a/x", "redis://u:1/hunter2@a/x",
		"redis://u:hunter2?@a", "redis://u:1?hunter2@a", "redis://u:hunter2#@a", "redis://u:hunter2%zz@a", "redis://u:hunter2@a,b",
		"redis-sentinel://a?sentinel_password=hunter2", "redis-sentinel://a/m?sentinel_password=hunter2&x=1", "u:hunter2@a",
		"redis-sentinel://a/m?sentinel_password=1&hunter2", "redis://u:1@hunter2/x@a", "redis://u:1@x/hunter2@a/0", "redis://u:1@x?hunter2@a",
		"redis://u@b:hunter2/1@a", "redis://u@b:hunter2?1@a", "redis://u@b:1/hunter2@a", "redis-sentinel://u:1@x/hunter2@a/m",
	} {
		if _, _, err := ParseURL(url); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("ParseURL(%q): error %v, want one without hunter2", url, err)
		}
	}
}
