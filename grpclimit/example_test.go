package grpclimit_test

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/grpclimit"
)

func ExamplePerClient() {
	limited, err := grpclimit.PerClient("60/m and 1000/d")
	if err != nil {
		fmt.Println(err)
		return
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(limited.Unary), grpc.StreamInterceptor(limited.Stream))
	defer server.Stop() // register services and call Serve before
	// Output:
}

// Each user has a limit for each method, and all users have one together.
func ExampleNewServer() {
	limited, err := grpclimit.NewServer(grpclimit.Options{
		Engine: weir.NewMemory(weir.MemoryOptions{}), // or one of redislimit
		Rules: []grpclimit.Rule{
			{Limit: "user=10/s", Key: grpclimit.Combine(grpclimit.Metadata("x-user"), grpclimit.Method), Missing: grpclimit.MissingRefused},
			{Limit: "all=1000/s and concurrency 50", Key: grpclimit.Everyone},
		},
		EachMessage: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(limited.Unary), grpc.StreamInterceptor(limited.Stream))
	defer server.Stop()
	// Output:
}

// The client makes at most 5 calls a second, and waits as long as the server says when it refuses one.
func ExampleNewClient() {
	client, err := grpclimit.NewClient(grpclimit.ClientOptions{Rules: []grpclimit.Rule{{Limit: "5/s"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, err := grpc.NewClient("dns:///api.example:443",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(client.Unary), grpc.WithStreamInterceptor(client.Stream))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	// Output:
}
