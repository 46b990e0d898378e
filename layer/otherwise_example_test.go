package layer_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

// fromPool returns a request for a tenant's own limit, and then for the pool that all share.
func fromPool(own, pool *weir.Rule, tenant string) weir.Request {
	request, shared := own.For(tenant, 1), pool.For("all", 1)
	request.Otherwise = &shared
	return request
}

// Each tenant has two an hour of its own. Beyond them, all share three.
func ExampleOtherwise() {
	own, err1 := weir.ParseRule("own=2/h")
	pool, err2 := weir.ParseRule("pool=3/h")
	engine, err3 := layer.Otherwise(weir.NewMemory(weir.MemoryOptions{}))
	if err := errors.Join(err1, err2, err3); err != nil {
		panic(err)
	}
	for _, tenant := range []string{"acme", "acme", "acme", "globex", "acme", "acme", "acme"} {
		d, err := engine.Take(context.Background(), fromPool(own, pool, tenant))
		fmt.Println(tenant, d.Allowed, d.Rule, d.Remaining, err)
	}
	// Output:
	// acme true own 1 <nil>
	// acme true own 0 <nil>
	// acme true pool 2 <nil>
	// globex true own 1 <nil>
	// acme true pool 1 <nil>
	// acme true pool 0 <nil>
	// acme false own 0 <nil>
}
