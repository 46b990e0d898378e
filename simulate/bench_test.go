package simulate_test

import (
	"testing"
	"time"

	"github.com/weirflow/weir/simulate"
)

// BenchmarkCompare decides a million requests of made-up traffic under a token bucket, on one core.
func BenchmarkCompare(b *testing.B) {
	pattern, err := simulate.ParsePattern("constant 100000/s")
	if err != nil {
		b.Fatal(err)
	}
	const requests = 1_000_000
	for b.Loop() {
		c, err := pattern.Compare([]string{"token bucket 1000/s burst 1000"}, simulate.Scenario{Length: 10 * time.Second, Seed: 1})
		if err != nil || c.Requests != requests || c.Limits[0].Admitted != 1000+9999 {
			b.Fatalf("%+v, %v", c, err)
		}
	}
	b.ReportMetric(float64(b.N)*requests/b.Elapsed().Seconds(), "decisions/s")
}
