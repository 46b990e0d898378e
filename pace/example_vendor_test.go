package pace_test

import (
	"context"
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// The terms of a vendor: 8 requests at once, 100 in any 10 seconds, 5,000 a day.
func vendorsTerms() (slots, rate, quota *weir.Rule, err error) {
	if slots, err = weir.ParseRule("slots=concurrency 8 lease 1m"); err != nil {
		return nil, nil, nil, err
	}
	if rate, err = weir.ParseRule("rate=sliding log 100/10s"); err != nil {
		return nil, nil, nil, err
	}
	quota, err = weir.ParseRule("quota=fixed window 5000/d")
	return slots, rate, quota, err
}

// vendor makes requests within the terms of a vendor.
type vendor struct {
	queue              *pace.Queue
	slots, rate, quota *weir.Rule
}

// call makes a request as soon as all three rules admit it.
func (v *vendor) call(ctx context.Context, request func(context.Context) error) error {
	a, err := v.queue.Acquire(ctx, v.slots.For("vendor", 1), v.rate.For("vendor", 1), v.quota.For("vendor", 1))
	if err != nil {
		return err
	}
	defer a.Done(ctx) // returns the slot, also after ctx has ended
	return request(ctx)
}

func ExampleQueue_Acquire() {
	slots, rate, quota, err := vendorsTerms()
	if err != nil {
		fmt.Println(err)
		return
	}
	engine := weir.NewMemory(weir.MemoryOptions{})
	queue, err := pace.NewQueue(engine, pace.QueueOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	v := vendor{queue, slots, rate, quota}
	ctx := context.Background()
	if err := v.call(ctx, func(context.Context) error { return nil }); err != nil {
		fmt.Println(err)
	}
	for _, rule := range []*weir.Rule{slots, rate, quota} {
		d, err := engine.Peek(ctx, rule.For("vendor", 0))
		fmt.Println(rule.Name(), d.Remaining, "of", d.Limit, err)
	}
	// Output:
	// slots 8 of 8 <nil>
	// rate 99 of 100 <nil>
	// quota 4999 of 5000 <nil>
}
