package redislimit

import (
	"context"
	"strconv"
)

// Sender is a Redis client other than rueidis. docs/redis.md shows one for go-redis.
type Sender interface {
	// Send sends a command, whose name is the first word, and returns the reply, a string. The words are bytes, not
	// text; Send must not keep them. An error reply of the server must have a method RedisError(), like the errors of
	// go-redis, or be a rueidis.RedisError. Every other error counts as a lost answer.
	//
	// A cluster client sends EVALSHA and EVAL to the node of their first key, which is word 3, and follows MOVED and
	// ASK. It must never repeat a command whose answer was lost, because its cost may have been counted. It must not
	// panic: most calls are made in a goroutine of the engine.
	Send(ctx context.Context, command ...string) (reply string, err error)
}

// NewWith returns an engine over a client other than rueidis. The caller keeps ownership of the client. For a
// cluster, set [Options.OneSlot]. NewWith makes no call.
func NewWith(sender Sender, options Options) (*Engine, error) {
	return newEngine(nil, sender, options)
}

// sendBy calls the script by its hash, and by its text if the server does not know it.
func (s sendable) sendBy(ctx context.Context, sender Sender, keys, args []string) (string, error) {
	words := make([]string, 0, 3+len(keys)+len(args))
	words = append(words, "EVALSHA", s.hash, strconv.Itoa(len(keys)))
	words = append(append(words, keys...), args...)
	reply, err := sender.Send(ctx, words...)
	if refusedFor(err, "NOSCRIPT") {
		words[0], words[1] = "EVAL", s.source
		reply, err = sender.Send(ctx, words...)
	}
	return reply, err
}
