package redislimit

import "context"

// Sender is a Redis client other than rueidis. docs/howto/redis.md shows one for go-redis.
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
