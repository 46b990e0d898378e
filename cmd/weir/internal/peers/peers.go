// Package peers counts the daemons that share a Redis server, so that a local share of a limit follows their number.
//
// Each daemon announces itself every two seconds, in a hash beside the states, and finds there all daemons that have
// done so within the last ten. [Counter.Peers] is the largest number of the last ten minutes: a share that is too small
// for a while admits less than the limit, one that is too large admits more. While the server is away nothing is
// counted, so the number stays as it was.
package peers

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir/redislimit"
)

// The times of the counter.
const (
	lookGap   = 2 * time.Second
	aliveTime = 10 * time.Second // a daemon that has been silent for longer has gone
	keptTime  = 10 * time.Minute
)

// announceScript announces a daemon, and forgets those that have gone.
//
//	KEYS[1]  a hash: when each daemon has announced itself, in milliseconds, by its name
//	ARGV     the name of the daemon, and how long one counts, in milliseconds
//	reply    the number of daemons
var announceScript = rueidis.NewLuaScript(`
local t = redis.call('TIME')
local now, seen = t[1] * 1000 + math.floor(t[2] / 1000), 0
redis.call('HSET', KEYS[1], ARGV[1], now)
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local at = tonumber(all[i + 1]) or 0
  if math.abs(now - at) > tonumber(ARGV[2]) then
    redis.call('HDEL', KEYS[1], all[i])
  else
    seen = seen + 1
  end
end
return seen`)

// Counter counts the daemons of a server. It is safe for concurrent use.
type Counter struct {
	options rueidis.ClientOption
	key     string
	name    string
	log     *slog.Logger
	count   count

	mu     sync.Mutex
	client rueidis.Client // nil until the server answers
	end    func()
	ended  chan struct{}
}

// Open returns the counter of a Redis server, which is named as in --engine. Nothing is announced yet.
func Open(url string, log *slog.Logger) (*Counter, error) {
	client, engine, err := redislimit.ParseURL(url)
	if err != nil {
		return nil, err
	}
	client.PipelineMultiplex = -1 // one connection
	return &Counter{options: client, key: cmp.Or(engine.Prefix, "weir") + ":daemons", name: rand.Text(), log: log, ended: make(chan struct{})}, nil
}

// Peers returns the largest number of daemons of the last ten minutes, this one included.
func (c *Counter) Peers() int {
	peers, _ := c.count.number()
	return peers
}

// Seen returns the number of daemons at the last look, or 0 before the first one.
func (c *Counter) Seen() int {
	_, seen := c.count.number()
	return seen
}

// Announce announces this daemon, and counts.
func (c *Counter) Announce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookGap/2)
	defer cancel()
	client, err := c.connected()
	if err != nil {
		return err
	}
	seen, err := announceScript.Exec(ctx, client, []string{c.key}, []string{c.name, strconv.FormatInt(aliveTime.Milliseconds(), 10)}).AsInt64()
	if err != nil {
		return err
	}
	if before, now := c.count.add(int(seen)); before != now && before > 0 {
		c.log.Info("another number of daemons shares the engine", "peers", now, "before", before, "seen", seen)
	}
	return nil
}

// Refused reports whether an error of Announce is an answer of the server, which no wait mends.
func Refused(err error) bool {
	_, answered := errors.AsType[*rueidis.RedisError](err)
	return answered
}

func (c *Counter) connected() (rueidis.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == nil {
		client, err := rueidis.NewClient(c.options)
		if err != nil {
			return nil, err
		}
		c.client = client
	}
	return c.client, nil
}

// Start announces the daemon again and again, until Close.
func (c *Counter) Start() {
	ctx, end := context.WithCancel(context.Background())
	c.end = end
	go c.run(ctx)
}

func (c *Counter) run(ctx context.Context) {
	defer close(c.ended)
	tick := time.NewTicker(lookGap)
	defer tick.Stop()
	for failing := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := c.Announce(ctx)
		if failed := err != nil; failed != failing && ctx.Err() == nil {
			if failing = failed; failed {
				c.log.Warn("the daemons on the engine are not counted; their last number stays", "peers", c.Peers(), "err", err)
			} else {
				c.log.Info("the daemons on the engine are counted again", "peers", c.Peers(), "seen", c.Seen())
			}
		}
	}
}

// Close ends the announcements. Other daemons see at once that this one has gone.
func (c *Counter) Close() {
	if c.end != nil {
		c.end()
		<-c.ended
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookGap/4)
	defer cancel()
	_ = c.client.Do(ctx, c.client.B().Hdel().Key(c.key).Field(c.name).Build()).Error() // it would end soon by itself
	c.client.Close()
}
