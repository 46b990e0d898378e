package envoyproxy

import (
	"maps"
	"net/url"
	"strings"
	"time"
)

// redis makes the URL of --engine. Without a REDIS_URL the states are in memory.
func (e *Environment) redis(v *variables) {
	where := v.get("REDIS_URL")
	if where == "" {
		e.withoutRedis(v)
		return
	}
	e.patience(v)
	options := url.Values{}
	user := e.password(v, options, "password_env", "REDIS_AUTH")
	scheme, hosts := e.server(v, where, options)
	given := map[string]string{"prefix": "CACHE_KEY_PREFIX"}
	if strings.HasPrefix(scheme, "rediss") {
		maps.Copy(given, map[string]string{"ca": "REDIS_TLS_CACERT", "cert": "REDIS_TLS_CLIENT_CERT", "key": "REDIS_TLS_CLIENT_KEY"})
	}
	for option, name := range given {
		if value := v.get(name); value != "" {
			options.Set(option, value)
		}
	}
	if user != "" {
		hosts = url.PathEscape(user) + "@" + hosts
	}
	e.Flags["engine"] = scheme + "://" + hosts
	if len(options) > 0 {
		e.Flags["engine"] += "?" + options.Encode()
	}
}

// patience reads how long the daemon waits for Redis at the start. 0 is without end there, and the default here.
func (e *Environment) patience(v *variables) {
	const name = "REDIS_STARTUP_MAX_ELAPSED_TIME"
	wait, err := time.ParseDuration(v.text(name, "0"))
	v.refuse(err != nil, "%s is %q, want a duration like 30s", name, v.get(name))
	if wait > 0 {
		e.Flags["engine-wait"] = v.get(name)
	}
}

// withoutRedis names the variables that have no effect without REDIS_URL.
func (e *Environment) withoutRedis(v *variables) {
	for _, name := range []string{"BACKEND_TYPE", "REDIS_TYPE", "REDIS_SOCKET_TYPE", "REDIS_AUTH", "REDIS_TLS"} {
		if v.get(name) != "" {
			e.Unused = append(e.Unused, name+" without REDIS_URL: states are where --engine says, in memory by default")
		}
	}
}

// server returns the scheme and the hosts of the URL of --engine.
func (e *Environment) server(v *variables, where string, options url.Values) (scheme, hosts string) {
	scheme, kind := "redis", v.text("REDIS_TYPE", "SINGLE")
	hosts, secure := strings.CutPrefix(where, "rediss://")
	if secure = v.flag("REDIS_TLS") || secure; secure {
		scheme = "rediss"
	}
	hosts = strings.TrimPrefix(hosts, "redis://")
	socket := v.text("REDIS_SOCKET_TYPE", "unix")
	v.refuse(socket != "unix" && socket != "tcp", "REDIS_SOCKET_TYPE is %q, want unix or tcp", socket)
	switch strings.ToUpper(kind) {
	case "SINGLE":
		if socket == "unix" {
			v.refuse(secure, "REDIS_TLS is true, and REDIS_SOCKET_TYPE is unix, where weir speaks no TLS: set REDIS_SOCKET_TYPE=tcp for a server at HOST:PORT")
			v.refuse(!secure && !strings.Contains(hosts, "/"), "REDIS_URL is no path, and REDIS_SOCKET_TYPE is unix, as it is by default: set REDIS_SOCKET_TYPE=tcp for a server at HOST:PORT")
			scheme = "unix"
		}
	case "CLUSTER":
		scheme += "-cluster"
	case "SENTINEL": // MASTER,HOST:PORT,…
		master, sentinels, _ := strings.Cut(hosts, ",")
		scheme, hosts = scheme+"-sentinel", sentinels+"/"+master
		if name := e.password(v, options, "sentinel_password_env", "REDIS_SENTINEL_AUTH"); name != "" {
			options.Set("sentinel_username", name)
		}
	default:
		v.refuse(true, "REDIS_TYPE is %q, want SINGLE, SENTINEL or CLUSTER", kind)
	}
	return scheme, hosts
}

// password reads PASSWORD or USER:PASSWORD. It returns the user.
func (e *Environment) password(v *variables, options url.Values, option, name string) (user string) {
	value := v.get(name)
	if value == "" {
		return ""
	}
	options.Set(option, name)
	user, password, both := strings.Cut(value, ":")
	if !both {
		return ""
	}
	e.Passwords[name] = password
	return user
}
