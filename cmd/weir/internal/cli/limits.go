package cli

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/redislimit"
)

// Package plain knows the texts of limits.
var (
	RuleLimits, OneSubjectLimits = plain.RuleLimits, plain.OneSubjectLimits
	LimitForms, RuleForms        = plain.LimitForms, plain.RuleForms
	LimitError, LimitHints       = plain.LimitError, plain.LimitHints
)

// CompleteLimit offers the examples of limits that begin with the text. After "and" it completes another limit.
func CompleteLimit(examples []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, text string) (texts []string, _ cobra.ShellCompDirective) {
		const and = " and "
		last := 0
		if at := strings.LastIndex(text, and); at >= 0 {
			last = at + len(and)
		}
		for _, example := range examples {
			if strings.HasPrefix(example, text[last:]) {
				texts = append(texts, text[:last]+example)
			}
		}
		return texts, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// EngineHints list the values of --engine.
var EngineHints = []string{
	"an engine is memory, or the URL of a Redis server: redis://127.0.0.1:6379",
	"a cluster: redis-cluster://HOST:PORT,…; behind Sentinel: redis-sentinel://HOST:PORT,…/MASTER; with TLS: rediss://…; a socket: unix:///PATH",
	"a database: postgres://USER@HOST/DATABASE, mysql://USER@HOST/DATABASE or sqlite:FILE; docs/howto/sql.md lists options",
	"options follow a question mark, like ?password_file=FILE or ?prefix=shop; docs/howto/redis.md lists them",
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
		return "docs/howto/redis.md lists the tested versions of Redis and Valkey"
	}
	return "is the server running, and does it accept this user? docs/howto/redis.md lists the commands that the user needs"
}
