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
		{"rediss-sentinel://a/my%20main", "[a:26379] TLS master my main over TLS"},
	}
	for _, tt := range tests {
		option, err := ParseURL(tt.url)
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
		"redis://a": DefaultTimeout, "redis-cluster://a,b": DefaultTimeout, "redis-sentinel://a/main?timeout=100ms": 100 * time.Millisecond, "redis://a?timeout=2s": 2 * time.Second,
	} {
		option, err := ParseURL(url)
		if err != nil || option.ConnWriteTimeout+2*option.Dialer.KeepAlive > want || option.ConnWriteTimeout <= 0 || option.Dialer.Timeout != want {
			t.Errorf("ParseURL(%q): got %v to write, pings after %v, %v to dial and error %v, want a silent connection found within %v", url, option.ConnWriteTimeout, option.Dialer.KeepAlive, option.Dialer.Timeout, err, want)
		}
	}
}

// describe is the option in words, as far as a URL can say it.
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
	add(o.Sentinel.MasterSet != "", "master "+o.Sentinel.MasterSet)
	add(o.Sentinel.TLSConfig != nil, "over TLS")
	text := strings.Join(words, " ")
	if o.ForceSingleClient {
		text += ", never a cluster"
	}
	if o.Sentinel.Username != "" {
		text += ", sentinels user " + o.Sentinel.Username + " password " + o.Sentinel.Password
	}
	return text
}

func TestURLErrorsNameThePart(t *testing.T) {
	tests := []struct{ url, want string }{
		{"", "scheme is missing; a URL reads redis://HOST:PORT"},
		{"localhost:6379", "scheme is missing; a URL reads redis://HOST:PORT"},
		{"http://localhost", `scheme "http" is not redis, redis-cluster or redis-sentinel, or one of them with TLS: rediss, rediss-cluster, rediss-sentinel`},
		{"redis+unix://localhost", `scheme "redis+unix" is not redis, redis-cluster or redis-sentinel, or one of them with TLS: rediss, rediss-cluster, rediss-sentinel`},
		{"redis://", "host 1 of 1 is empty"},
		{"redis://:6379", "host 1 of 1 is empty"},
		{"redis-cluster://a,,b", "host 2 of 3 is empty"},
		{"redis://a:70000", `host 1 of 1 has port "70000", not a number from 1 to 65535`},
		{"redis://a:0", `host 1 of 1 has port "0", not a number from 1 to 65535`},
		{"redis-cluster://a,b:x", `host 2 of 2 has port "x", not a number from 1 to 65535`},
		{"redis://::1", `host 1 of 1 ":" is not a name or address; an IPv6 address has brackets`},
		{"redis://[::1", `host 1 of 1 "[:" is not an IPv6 address in brackets`},
		{"redis://[host]:1", `host 1 of 1 "[host]" is not an IPv6 address in brackets`},
		{"redis://a,b", "host 1 of 2 is one too many for one server; a cluster reads redis-cluster://, or ends in ?cluster=1"},
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
		{"redis://a?db=1", `option "db" is unknown; there are client_name, cluster, sentinel_password, sentinel_username, skip_verify and timeout`},
		{"redis://a?timeout=5", `option timeout is "5", not a duration of 100ms or more, like 2s`},
		{"redis://a?timeout=99ms", `option timeout is "99ms", not a duration of 100ms or more, like 2s`},
		{"redis://a?timeout=1s&timeout=2s", "option timeout is given 2 times"},
		{"redis://a?x=%zz", "option is badly percent-encoded"},
		{"redis://u%zz@a", "user is badly percent-encoded"},
		{"redis://u:%zz@a", "password is badly percent-encoded"},
		{"redis://a#main", "fragment has no meaning here; encode # as %23"},
	}
	for _, tt := range tests {
		_, err := ParseURL(tt.url)
		if err == nil || err.Error() != "redislimit: URL: "+tt.want {
			t.Errorf("ParseURL(%q): error %v, want redislimit: URL: %s", tt.url, err, tt.want)
		}
		if _, ok := errors.AsType[*URLError](err); !ok {
			t.Errorf("ParseURL(%q): error of type %T, want *URLError", tt.url, err)
		}
	}
}

// Each password holds hunter2, some with characters that should have been
// encoded and so end the part too early.
func TestURLErrorsNeverHoldAPassword(t *testing.T) {
	for _, url := range []string{
		"redis://u:hunter2@", "redis://u:hunter2@a:x", "redis://u:hunter2@a?no=1", "redis://u:hunter2/1@a/x", "redis://u:1/hunter2@a/x",
		"redis://u:hunter2?@a", "redis://u:1?hunter2@a", "redis://u:hunter2#@a", "redis://u:hunter2%zz@a", "redis://u:hunter2@a,b",
		"redis-sentinel://a?sentinel_password=hunter2", "redis-sentinel://a/m?sentinel_password=hunter2&x=1", "u:hunter2@a",
	} {
		if _, err := ParseURL(url); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("ParseURL(%q): error %v, want one without hunter2", url, err)
		}
	}
}
