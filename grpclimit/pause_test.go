package grpclimit_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirflow/weir/grpclimit"
)

// longestRetry is the longest valid delay of a RetryInfo, in seconds.
const longestRetry = 315_576_000_000

// FuzzRetryInfo checks that no call is sent before the delay of a server has passed, as far as a year ahead. A delay
// that is not valid is none.
func FuzzRetryInfo(f *testing.F) {
	for _, seconds := range []int64{0, -1, 1, 29, 31, 60, 9_000_000_000, 9_223_372_036, 9_223_372_037, longestRetry, longestRetry + 1, -longestRetry, math.MaxInt64, math.MinInt64} {
		for _, nanos := range []int32{0, -1, 1, 999_999_999, math.MaxInt32, math.MinInt32} {
			f.Add(seconds, nanos, int64(30*time.Second))
		}
		f.Add(seconds, int32(0), int64(math.MaxInt64))
	}
	f.Fuzz(func(t *testing.T, seconds int64, nanos int32, maxWait int64) {
		if maxWait < 1 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			neverEarly(t, &durationpb.Duration{Seconds: seconds, Nanos: nanos}, time.Duration(maxWait))
		})
	})
}

func neverEarly(t *testing.T, delay *durationpb.Duration, maxWait time.Duration) {
	t.Helper()
	c := newClient(t, grpclimit.ClientOptions{MaxWait: maxWait})
	refusal, err := status.New(codes.ResourceExhausted, "slow down").WithDetails(&errdetails.RetryInfo{RetryDelay: delay})
	if err != nil {
		t.Fatal(err)
	}
	const year = 366 * 24 * time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 2*year)
	defer cancel()
	began, calls := time.Now(), 0
	err = call(ctx, c, "m", func() error {
		if calls++; calls == 1 {
			return refusal.Err()
		}
		return nil
	})
	passed := time.Since(began)
	want := time.Duration(0) // a year at most
	if delay.IsValid() {
		want = min(max(delay.AsDuration(), 0), year)
	}
	switch {
	case !delay.IsValid() && (calls != 1 || passed != 0):
		t.Errorf("RetryInfo of %v: %d calls in %v, want the refusal at once", delay, calls, passed)
	case calls > 1 && passed < want:
		t.Errorf("RetryInfo of %v: %d calls in %v, want the second after %v", delay, calls, passed, want)
	case calls == 1 && (passed != 0 || status.Code(err) != codes.ResourceExhausted):
		t.Errorf("RetryInfo of %v: %v after %v, want the refusal at once", delay, err, passed)
	}
}
