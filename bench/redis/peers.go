package main

import (
	"context"
	"strings"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/throttled/throttled/v2"
	throttledredis "github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/redislimit"
)

// All peers have a limit of one unit per second for each key and a burst that no run uses up, so that a key stays
// alive for at least a second. ulule has only windows: it counts the same burst in an hour.
const burst = 20_000_000

// ask decides on each key with one unit and returns the number admitted.
type ask func(ctx context.Context, keys []string) (admitted int, err error)

// peer is a limiter on an empty server, or on an empty cluster. It gets the addresses of the masters, separated by
// commas.
type peer struct {
	name   string
	flawed bool // it has known errors, which the run counts; errors of other peers end the run
	make   func(addr string) (ask, func(), error)
}

const (
	nameWeir        = "redislimit"
	nameFewLanes    = "redislimit, 16 lanes"
	nameRedisRate   = "redis_rate"
	nameBareRueidis = "bare EVALSHA, rueidis"
)

func singles() []peer {
	return []peer{
		{name: nameWeir, make: weirOne(redislimit.Options{})},
		{name: nameRedisRate, make: redisRate},
		{name: "throttled", make: throttledStore, flawed: true},
		{name: "ulule", make: ululeStore},
		{name: nameBareRueidis, make: bareRueidis},
		{name: "bare EVALSHA, go-redis", make: bareGoRedis},
	}
}

// clustered returns the peers that are also measured on a cluster, and Weir with fewer lanes, which matter only
// there.
func clustered() (some []peer) {
	for _, p := range singles() {
		if p.name == nameWeir || p.name == nameBareRueidis {
			some = append(some, p)
		}
	}
	return append(some, peer{name: nameFewLanes, make: weirOne(redislimit.Options{Lanes: 16})})
}

func openEngine(addr string, limit weir.Limit, options redislimit.Options) (*redislimit.Engine, *weir.Rule, error) {
	rule, err := weir.NewRule("bench", limit)
	if err != nil {
		return nil, nil, err
	}
	url := "redis://" + addr
	if strings.Contains(addr, ",") {
		url = "redis-cluster://" + addr
	}
	engine, err := redislimit.Open(url, options)
	if err != nil {
		return nil, nil, err
	}
	if err := engine.Check(rule); err != nil {
		engine.Close()
		return nil, nil, err
	}
	return engine, rule, nil
}

func weirOne(options redislimit.Options) func(string) (ask, func(), error) {
	return func(addr string) (ask, func(), error) {
		engine, rule, err := openEngine(addr, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: burst}, options)
		if err != nil {
			return nil, nil, err
		}
		return one(func(ctx context.Context, key string) (bool, error) {
			d, err := engine.Take(ctx, rule.For(key, 1))
			return d.Allowed, err
		}), engine.Close, nil
	}
}

// one decides key by key.
func one(ask func(ctx context.Context, key string) (bool, error)) ask {
	return func(ctx context.Context, keys []string) (admitted int, err error) {
		for _, key := range keys {
			allowed, err := ask(ctx, key)
			if err != nil {
				return admitted, err
			}
			if allowed {
				admitted++
			}
		}
		return admitted, nil
	}
}

func dialGoRedis(addr string) (*redis.Client, func()) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	return client, func() { _ = client.Close() }
}

func redisRate(addr string) (ask, func(), error) {
	client, end := dialGoRedis(addr)
	limiter := redis_rate.NewLimiter(client)
	limit := redis_rate.Limit{Rate: 1, Burst: burst, Period: time.Second}
	return one(func(ctx context.Context, key string) (bool, error) {
		result, err := limiter.Allow(ctx, key, limit)
		return err == nil && result.Allowed == 1, err
	}), end, nil
}

func throttledStore(addr string) (ask, func(), error) {
	client, end := dialGoRedis(addr)
	store, err := throttledredis.NewCtx(client, "throttled:")
	if err != nil {
		return nil, nil, err
	}
	limiter, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(1), MaxBurst: burst})
	if err != nil {
		return nil, nil, err
	}
	return one(func(ctx context.Context, key string) (bool, error) {
		limited, _, err := limiter.RateLimitCtx(ctx, key, 1)
		return !limited, err
	}), end, nil
}

func ululeStore(addr string) (ask, func(), error) {
	client, end := dialGoRedis(addr)
	store, err := ululeredis.NewStore(client)
	if err != nil {
		return nil, nil, err
	}
	limits := limiter.New(store, limiter.Rate{Period: time.Hour, Limit: burst})
	return one(func(ctx context.Context, key string) (bool, error) {
		result, err := limits.Get(ctx, key)
		return !result.Reached, err
	}), end, nil
}

// bareArgs are the unit and the burst in us.
var bareArgs = []string{"1000000", "20000000000000"}

func dialRueidis(addr string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: strings.Split(addr, ",")})
}

func bareRueidis(addr string) (ask, func(), error) {
	client, err := dialRueidis(addr)
	if err != nil {
		return nil, nil, err
	}
	script := rueidis.NewLuaScript(bareScript)
	return one(func(ctx context.Context, key string) (bool, error) {
		reply, err := script.Exec(ctx, client, []string{key}, bareArgs).AsIntSlice()
		return err == nil && reply[0] == 1, err
	}), client.Close, nil
}

func bareGoRedis(addr string) (ask, func(), error) {
	client, end := dialGoRedis(addr)
	script := redis.NewScript(bareScript)
	return one(func(ctx context.Context, key string) (bool, error) {
		reply, err := script.Run(ctx, client, []string{key}, bareArgs[0], bareArgs[1]).Int64Slice()
		return err == nil && reply[0] == 1, err
	}), end, nil
}
