package redislimit_test

import (
	"context"
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/redislimit"
)

// openGuarded returns an engine that answers within 15 ms, whether or not Redis does. While Redis is away, each of three
// processes admits a third of each limit.
func openGuarded(url string) (*layer.Guarded, error) {
	redis, err := redislimit.Open(url, redislimit.Options{ConnectLater: true})
	if err != nil {
		return nil, err
	}
	return layer.Guard(redis, layer.GuardOptions{OnFailure: layer.Local, Peers: 3})
}

func Example_guard() {
	engine, err := openGuarded("redis://127.0.0.1:1") // where no Redis is
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()
	api, _ := weir.ParseRule("api=fixed window 6/d")
	for range 3 {
		d, err := engine.Take(context.Background(), api.For("alice", 1))
		fmt.Println(d.Allowed, err)
	}
	// Output:
	// true <nil>
	// true <nil>
	// false <nil>
}
