package redislimit_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

// serverVariable names the server that the suite runs against, as make redis-suite does. The tests write keys below
// testPrefix and delete them at the end. They change and read no other keys.
const serverVariable = "WEIR_REDIS_URL"

// testPrefix begins every key of this run.
var testPrefix = fmt.Sprint("weirtest-", strconv.FormatInt(time.Now().UnixNano(), 36), "-")

// namedOneSlot is set if the URL says that the server is a cluster behind one address.
var namedOneSlot bool

// suiteServer returns a client of the named server, or else of a server of the test.
func suiteServer(t *testing.T) (client rueidis.Client, named bool) {
	t.Helper()
	url := os.Getenv(serverVariable)
	if url == "" {
		return dial(t, redistest.Start(t)), false
	}
	option, options, err := redislimit.ParseURL(url)
	if err != nil {
		t.Fatalf("%s: %v", serverVariable, err)
	}
	namedOneSlot = options.OneSlot
	client = dialWith(t, option)
	t.Cleanup(func() { sweep(t, client) })
	for addr, node := range client.Nodes() {
		info, err := node.Do(t.Context(), node.B().Info().Section("server").Build()).ToString()
		t.Logf("%s: %v %.400q", addr, err, info)
	}
	return client, true
}

// sweep deletes the keys of this run.
func sweep(t *testing.T, client rueidis.Client) {
	ctx := context.Background() // that of the test has ended
	for addr, node := range client.Nodes() {
		for cursor := uint64(0); ; {
			page, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match(testPrefix+"*").Count(1000).Build()).AsScanEntry()
			if err != nil {
				t.Errorf("%s: keys that begin with %s are left: SCAN: %v", addr, testPrefix, err)
				break
			}
			for _, key := range page.Elements {
				if err := client.Do(ctx, client.B().Del().Key(key).Build()).Error(); err != nil {
					t.Errorf("%s: a key that begins with %s is left: DEL: %v", addr, testPrefix, err)
				}
			}
			if cursor = page.Cursor; cursor == 0 {
				break
			}
		}
	}
}
