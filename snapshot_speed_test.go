package weir_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// BenchmarkSnapshot saves and loads token buckets by the million. Ten million
// take 2 GB of memory: go test -run '^$' -bench 'Snapshot/.*10000000' .
func BenchmarkSnapshot(b *testing.B) {
	for _, keys := range []int{1_000_000, 10_000_000} {
		now := time.Now().UnixNano()
		clock := func() int64 { return now }
		m := weir.NewMemory(weir.MemoryOptions{Clock: clock, MaxKeys: 2 * keys})
		rule := mustRule(b, "r", weir.TokenBucket{Rate: weir.PerHour(20), Burst: 20})
		filled := false
		fill := func() []byte {
			for k := 0; k < keys && !filled; k++ {
				if d, err := m.Take(context.Background(), rule.For(fmt.Sprint("user", k), 1)); err != nil || !d.Allowed {
					b.Fatalf("key %d: %+v, %v", k, d, err)
				}
			}
			filled = true
			return saved(b, m)
		}
		b.Run(fmt.Sprintf("save/%d", keys), func(b *testing.B) {
			file := bytes.NewBuffer(fill()[:0])
			for b.Loop() {
				file.Reset()
				if err := m.Save(file); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(file.Len())/float64(keys), "bytes/key")
		})
		b.Run(fmt.Sprintf("load/%d", keys), func(b *testing.B) {
			file := fill()
			for b.Loop() {
				loaded(b, file, clock)
			}
		})
	}
}
