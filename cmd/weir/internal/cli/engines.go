package cli

import (
	"time"

	"github.com/weirflow/weir/redislimit"
)

// EngineHints list the values of --engine.
var EngineHints = []string{
	"an engine is memory, or the URL of a Redis server: redis://127.0.0.1:6379",
	"a cluster: redis-cluster://HOST:PORT,…; behind Sentinel: redis-sentinel://HOST:PORT,…/MASTER; with TLS: rediss://…; a socket: unix:///PATH",
	"options follow a question mark, like ?password_file=FILE or ?prefix=shop; docs/redis.md lists them",
}

// RedisPatience bounds the time of a decision. A healthy server needs a thousandth of it, and the client of the
// daemon usually has a client waiting.
const RedisPatience = 2 * time.Second

// EngineHint returns a hint for a failure of Redis.
func EngineHint(reason redislimit.Reason) string {
	switch reason {
	case redislimit.ReadOnly:
		return "name the master, or its Sentinels: redis-sentinel://HOST:PORT,…/MASTER"
	case redislimit.TooOld:
		return "docs/redis.md lists the tested versions of Redis and Valkey"
	}
	return "is the server running, and does it accept this user? docs/redis.md lists the commands that the user needs"
}
