package pace_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// steady delivers what has arrived since its start at a rate in bytes a second, like a socket.
type steady struct {
	start time.Time
	rate  int64
	read  int64
}

func (s *steady) Read(p []byte) (int, error) {
	for {
		arrived := int64(time.Since(s.start)) * s.rate / int64(time.Second)
		if n := min(arrived-s.read, int64(len(p))); n > 0 {
			s.read += n
			return int(n), nil
		}
		time.Sleep(time.Millisecond)
	}
}

// Streams of equal weight share a bandwidth. One that can use only a third of it has its third, and the other the rest.
func TestAStreamLeavesWhatItCannotUse(t *testing.T) {
	for _, third := range []int64{3, 10} {
		synctest.Test(t, func(t *testing.T) {
			lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(mib), Burst: 32 * kib})
			ctx, cancel := context.WithCancel(t.Context())
			var moved [2]atomic.Int64
			var streams sync.WaitGroup
			for i, source := range []io.Reader{&steady{start: time.Now(), rate: mib / third}, endless{mib}} {
				streams.Go(func() {
					r := pace.Reader(ctx, pace.InFlow(lim, fmt.Sprint(i), 1), source)
					buffer := make([]byte, 64*kib)
					for {
						n, err := r.Read(buffer)
						moved[i].Add(int64(n))
						if err != nil {
							return
						}
					}
				})
			}
			time.Sleep(60 * time.Second)
			slow, fast := moved[0].Load(), moved[1].Load()
			if want := 60 * mib / third; slow < want*98/100 || slow > want {
				t.Errorf("the slow stream moved %d bytes in 60 s, want %d within 2 %%", slow, want)
			}
			if want := 60 * (mib - mib/third); fast < want*98/100 {
				t.Errorf("the fast stream moved %d bytes in 60 s, want %d within 2 %%", fast, want)
			}
			cancel()
			streams.Wait()
		})
	}
}
