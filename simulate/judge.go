package simulate

import (
	"context"
	"strconv"

	"github.com/weirflow/weir"
)

// judge decides on the requests of a run at the current virtual time. It holds one state, or one for each client.
type judge struct {
	take, peek func(client uint32, cost int64) (weir.Decision, error)
}

// newJudge returns a fresh judge that reads the time from *now. It prefers what decides fastest: they all give the
// same answers.
func newJudge(limits []weir.Limit, perClient bool, now *int64) (judge, error) {
	options := weir.Options{Clock: func() int64 { return *now }, MaxKeys: maxClients}
	switch {
	case len(limits) != 1:
		return ruleJudge(limits, perClient, options)
	case !perClient:
		l, err := weir.NewWith(limits[0], options)
		if err != nil {
			return judge{}, err
		}
		return judge{
			take: func(_ uint32, cost int64) (weir.Decision, error) { return l.Take(cost), nil },
			peek: func(_ uint32, cost int64) (weir.Decision, error) { return l.Peek(cost), nil },
		}, nil
	}
	k, err := weir.NewKeyedWith[uint32](limits[0], options)
	if err != nil { // a limit of one subject
		return limitersJudge(limits[0], options)
	}
	return judge{
		take: func(client uint32, cost int64) (weir.Decision, error) { return k.Take(client, cost), nil },
		peek: func(client uint32, cost int64) (weir.Decision, error) { return k.Peek(client, cost), nil },
	}, nil
}

// limitersJudge has a Limiter for each client.
func limitersJudge(limit weir.Limit, options weir.Options) (judge, error) {
	if _, err := weir.New(limit); err != nil {
		return judge{}, err
	}
	all := map[uint32]*weir.Limiter{}
	of := func(client uint32) (*weir.Limiter, error) {
		l, ok := all[client]
		if !ok {
			var err error
			if l, err = weir.NewWith(limit, options); err != nil {
				return nil, err
			}
			all[client] = l
		}
		return l, nil
	}
	return judge{
		take: func(client uint32, cost int64) (weir.Decision, error) {
			l, err := of(client)
			if err != nil {
				return weir.Decision{}, err
			}
			return l.Take(cost), nil
		},
		peek: func(client uint32, cost int64) (weir.Decision, error) {
			l, err := of(client)
			if err != nil {
				return weir.Decision{}, err
			}
			return l.Peek(cost), nil
		},
	}, nil
}

// ruleJudge asks the memory engine, which combines several limits.
func ruleJudge(limits []weir.Limit, perClient bool, options weir.Options) (judge, error) {
	rule, err := weir.NewRule(ruleName, limits...)
	if err != nil {
		return judge{}, err
	}
	engine, ctx := weir.NewMemory(weir.MemoryOptions{Clock: options.Clock, MaxKeys: maxClients}), context.Background()
	request := func(client uint32, cost int64) weir.Request {
		if !perClient {
			return rule.For("", cost)
		}
		return rule.For(strconv.FormatUint(uint64(client), 10), cost)
	}
	return judge{
		take: func(client uint32, cost int64) (weir.Decision, error) { return engine.Take(ctx, request(client, cost)) },
		peek: func(client uint32, cost int64) (weir.Decision, error) { return engine.Peek(ctx, request(client, cost)) },
	}, nil
}
