package recipes_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir/examples/recipes"
	"github.com/weirflow/weir/internal/redistest"
)

// Each user has at most three logins a minute. Refused logins count, too.
func ExampleFixedWindow() {
	client := connect()
	defer client.Close()

	logins := recipes.FixedWindow{Client: client, Window: time.Minute, Now: noon}
	alice := recipes.Key{Namespace: "shop", Resource: "login", Subject: "alice"}
	for range 4 {
		used, err := logins.Record(context.Background(), alice, 1)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(used, used <= 3)
	}
	// Prints:
	// 1 true
	// 2 true
	// 3 true
	// 4 false
}

// Tokens of a language model by the hour, counted when the answer has come. Fetch asks before the request, so it does
// not see concurrent requests.
func ExampleLog() {
	client := connect()
	defer client.Close()

	tokens := recipes.Log{Client: client, Window: time.Hour, Weigh: true, Now: noon}
	acme := recipes.Key{Namespace: "chat", Resource: "tokens", Subject: "acme"}
	for _, cost := range []int64{700, 400, 200} {
		used, err := tokens.Fetch(context.Background(), acme)
		if err != nil || used >= 1000 {
			fmt.Println("not now:", used, err)
			continue
		}
		used, err = tokens.Record(context.Background(), acme, cost)
		fmt.Println(used, err)
	}
	// Prints:
	// 700 <nil>
	// 1100 <nil>
	// not now: 1100 <nil>
}

// Requests of the last minute, smoothed over the boundary between two minutes.
func ExampleTwoWindows() {
	client := connect()
	defer client.Close()

	at := noon()
	requests := recipes.TwoWindows{Client: client, Window: time.Minute, Now: func() time.Time { return at }}
	address := recipes.Key{Namespace: "shop", Resource: "api", Subject: "192.0.2.7"}
	used, err := requests.Record(context.Background(), address, 8)
	fmt.Println(used, err)
	at = at.Add(time.Minute)
	for range 3 { // 3/4, 1/2 and 1/4 of the minute before still count
		at = at.Add(15 * time.Second)
		used, err = requests.Fetch(context.Background(), address)
		fmt.Println(used, err)
	}
	// Prints:
	// 8 <nil>
	// 6 <nil>
	// 4 <nil>
	// 2 <nil>
}

// connect connects to the server of the test; your program knows its own address.
func connect() rueidis.Client {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{os.Getenv("REDIS_ADDR")}, DisableCache: true})
	if err != nil {
		panic(err)
	}
	return client
}

// noon stands still; omit Now to use the real time.
func noon() time.Time { return time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC) }

// The examples have no Output comment, because that would run them without a server. This test runs them where there
// is one.
func TestExamplesPrintWhatTheySay(t *testing.T) {
	t.Setenv("REDIS_ADDR", redistest.Start(t).Addr)
	for name, tt := range map[string]struct {
		example func()
		want    string
	}{
		"FixedWindow": {ExampleFixedWindow, "1 true\n2 true\n3 true\n4 false\n"},
		"Log":         {ExampleLog, "700 <nil>\n1100 <nil>\nnot now: 1100 <nil>\n"},
		"TwoWindows":  {ExampleTwoWindows, "8 <nil>\n6 <nil>\n4 <nil>\n2 <nil>\n"},
	} {
		if got := printed(t, tt.example); got != tt.want {
			t.Errorf("Example%s prints %q, want %q", name, got, tt.want)
		}
	}
}

// printed returns what the function prints, which must fit in a pipe.
func printed(t *testing.T, f func()) string {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out := os.Stdout
	os.Stdout = writer
	f()
	os.Stdout = out
	_ = writer.Close()
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
