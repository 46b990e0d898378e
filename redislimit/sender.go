package redislimit

import (
	"context"
	"strconv"
)

// Sender is a client of Redis other than rueidis, of which an engine needs one
// method. docs/redis.md shows the one for go-redis.
type Sender interface {
	// Send sends a command, whose name is the first word, and returns the reply, a
	// string. The words are bytes, not text, and are not to be kept. An error that
	// the server replied with has a method RedisError(), as those of go-redis
	// have, or is a rueidis.RedisError; all others count as lost answers.
	//
	// A client of a cluster sends EVALSHA and EVAL to the node of their first key,
	// which is word 3, and follows MOVED and ASK. A command is never sent again
	// after its answer was lost: its cost may have been counted.
	Send(ctx context.Context, command ...string) (reply string, err error)
}

// NewWith makes an engine over a client other than rueidis, which stays the
// caller's. For a cluster, set [Options.OneSlot]. It does no call.
func NewWith(sender Sender, options Options) (*Engine, error) {
	return newEngine(nil, sender, options)
}

// eval calls the script by its hash, and by its text where the server does not
// know it.
func eval(ctx context.Context, sender Sender, keys, args []string) (string, error) {
	words := make([]string, 0, 3+len(keys)+len(args))
	words = append(words, "EVALSHA", scriptHash, strconv.Itoa(len(keys)))
	words = append(append(words, keys...), args...)
	reply, err := sender.Send(ctx, words...)
	if refusedFor(err, "NOSCRIPT") {
		words[0], words[1] = "EVAL", scriptSource
		reply, err = sender.Send(ctx, words...)
	}
	return reply, err
}
