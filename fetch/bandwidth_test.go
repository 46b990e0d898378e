package fetch_test

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/fetch"
)

const kib = 1 << 10

// download serves n bytes at a rate in bytes a second; 0 is as fast as they are read.
func download(n, rate int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(n))
		for left, chunk := n, make([]byte, kib); left > 0; left -= len(chunk) {
			if rate > 0 {
				select {
				case <-time.After(time.Duration(len(chunk)) * time.Second / time.Duration(rate)):
				case <-r.Context().Done():
					return
				}
			}
			if _, err := w.Write(chunk[:min(left, len(chunk))]); err != nil {
				return
			}
			if rate > 0 {
				w.(http.Flusher).Flush()
			}
		}
	}
}

// meter adds up what pages read, by host and instant.
type meter struct {
	mu     sync.Mutex
	total  int
	byHost map[string]int
	over   func(total int) // is called after each read
}

func (m *meter) page(_ context.Context, p *fetch.Page) error {
	for chunk := make([]byte, 4*kib); ; {
		n, err := p.Body.Read(chunk)
		m.mu.Lock()
		m.total += n
		m.byHost[p.URL.Host] += n
		m.over(m.total)
		m.mu.Unlock()
		if err != nil {
			return nil
		}
	}
}

func TestTheBandwidthIsKeptAndUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, burst = 100 * kib, 100 * kib / 10
		n := newNetwork(t, map[string]http.Handler{
			"a.example": free(download(500*kib, 0)), "b.example": free(download(500*kib, 0)), "c.example": free(download(500*kib, 0)),
		})
		began := time.Time{} // of the first body
		m := &meter{byHost: map[string]int{}}
		m.over = func(total int) {
			if began.IsZero() {
				began = time.Now()
			}
			if most := rate*time.Since(began).Seconds() + burst + 1; float64(total) > most {
				t.Errorf("%d bytes came within %v, want %.0f at most", total, time.Since(began), most)
			}
		}
		urls := append(append(pagesOf("a.example", 4), pagesOf("b.example", 4)...), pagesOf("c.example", 4)...)
		crawl(t, n, fetch.Options{Bandwidth: weir.PerSecond(rate), Page: m.page, PerHost: weir.PerSecond(10), Total: weir.PerSecond(100)}, urls...)
		if want := 12 * 500 * kib; m.total != want {
			t.Errorf("%d bytes came, want %d", m.total, want)
		}
		if used := float64(m.total) / (rate * time.Since(began).Seconds()); used < 0.98 {
			t.Errorf("%.1f %% of the bandwidth was used, want 98 %% at least", used*100)
		}
	})
}

// A slow host delivers all that it can, and the fast ones share the rest.
func TestSlowAndFastHostsShareTheBandwidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate = 100 * kib
		n := newNetwork(t, map[string]http.Handler{
			"slow.example": free(download(1000*kib, 10*kib)), "b.example": free(download(5000*kib, 0)), "c.example": free(download(5000*kib, 0)),
		})
		m := &meter{byHost: map[string]int{}, over: func(int) {}}
		time.AfterFunc(42*time.Second, func() { // robots.txt and pages begin within 2 s
			m.mu.Lock()
			defer m.mu.Unlock()
			for host, want := range map[string]int{"slow.example": 10 * kib * 40, "b.example": 45 * kib * 40, "c.example": 45 * kib * 40} {
				if got := m.byHost[host]; got < want*93/100 || got > want*108/100 {
					t.Errorf("%s had %d bytes in 40s, want about %d", host, got, want)
				}
			}
		})
		crawl(t, n, fetch.Options{Bandwidth: weir.PerSecond(rate), Page: m.page}, "http://slow.example/1", "http://b.example/1", "http://b.example/2", "http://c.example/1")
	})
}
