package redislimit

import (
	"context"
	"strconv"
)

// A proxy may send each call to the server of its first key and ignore the others. The states of the other keys would
// then be on several servers.
const (
	scatterLanes = 16     // keys, each on a lane of its own
	scatterEnds  = "5000" // ms until they expire
	scatterWrite = `for _, key in ipairs(KEYS) do redis.call('SET', key, 'probe', 'PX', ARGV[1], 'NX') end return ''`
	scatterRead  = `local n = redis.pcall('STRLEN', KEYS[1]) return n == 0 and '' or 'found'`
)

// scatters reports whether keys written by one call are missing when read one by one. It returns false if that is
// unknown.
func (e *Engine) scatters(ctx context.Context) bool {
	names := make([]string, min(scatterLanes, e.options.Lanes))
	for lane := range names {
		names[lane] = e.keys.probe(lane)
	}
	if _, err := e.evalText(ctx, scatterWrite, names, scatterEnds); err != nil {
		return false
	}
	for i := range names {
		if found, err := e.evalText(ctx, scatterRead, names[i:i+1]); err == nil && found == "" {
			return true
		}
	}
	return false
}

// evalText calls EVAL, for scripts that run once.
func (e *Engine) evalText(ctx context.Context, text string, keys []string, args ...string) (string, error) {
	number := strconv.Itoa(len(keys))
	if e.sender != nil {
		words := append([]string{"EVAL", text, number}, keys...)
		return e.sender.Send(ctx, append(words, args...)...)
	}
	client, err := e.connected()
	if err != nil {
		return "", err
	}
	return client.Do(ctx, client.B().Arbitrary("EVAL", text, number).Keys(keys...).Args(args...).Build()).ToString()
}
