package front_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/front"
)

// A front of a made-up protocol: a message has a sender, and its answer is a line.
func ExampleNew() {
	type message struct {
		sender string
		words  int64
	}
	limits, err := front.New(front.Options[message, string]{
		Name:   "chat",
		Key:    func(m message) string { return m.sender },
		Engine: weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return 0 }}),
		Rules:  []front.Rule[message, string]{{Limit: "words=10/m", Cost: func(m message) int64 { return m.words }, Settled: true}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	handle := func(ctx context.Context, m message) string {
		ask := limits.Ask(ctx, m, front.Whole)
		defer ask.Done()
		switch ask.Outcome {
		case front.Limited:
			return "come back in " + ask.Decision.RetryAfter.Round(time.Second).String()
		case front.NotDecided:
			return "no limits to ask"
		}
		defer ask.Grant.End(ctx)
		front.Settle(limits.Context(ctx, ask.Grant), "words", m.words/2) // half of the words were new
		return "delivered"
	}
	for range 3 {
		fmt.Println(handle(context.Background(), message{"alice", 8}))
	}
	fmt.Println(handle(context.Background(), message{"bob", 8}))
	// Output:
	// delivered
	// come back in 12s
	// come back in 12s
	// delivered
}
