package live

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/auth"
)

// The times of a stream.
const (
	writeTime = 10 * time.Second // for one event: a viewer that reads nothing for this long has gone
	firmTime  = 10 * time.Second // a newer viewer takes no place from one that came later than this ago
)

// viewer is one stream.
type viewer struct {
	began time.Time
	news  chan struct{} // has room for one
	out   chan struct{} // closed when it must end
}

// viewers are the streams, the oldest first.
type viewers struct {
	most   int
	mu     sync.Mutex
	all    []*viewer
	closed bool
}

// add makes room for a viewer. If all places are taken it gets that of the one who has watched longest, whose page asks again.
// It returns nil if there is no room.
func (v *viewers) add(now time.Time) *viewer {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed || v.most < 1 {
		return nil
	}
	if len(v.all) >= v.most {
		if now.Sub(v.all[0].began) < firmTime {
			return nil
		}
		close(v.all[0].out)
		v.all = v.all[1:]
	}
	added := &viewer{now, make(chan struct{}, 1), make(chan struct{})}
	v.all = append(slices.Clip(v.all), added)
	return added
}

func (v *viewers) remove(gone *viewer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = slices.DeleteFunc(v.all, func(one *viewer) bool { return one == gone })
}

func (v *viewers) number() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.all)
}

// wake tells all viewers that there is something new.
func (v *viewers) wake() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range v.all {
		select {
		case one.news <- struct{}{}:
		default: // it has not read the last one
		}
	}
}

// close ends all streams, and lets none begin.
func (v *viewers) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	for _, one := range v.all {
		close(one.out)
	}
	v.all = nil
}

// Stream serves GET /v1/admin/live. The token of a caller counts at each event, so that one that is withdrawn ends its streams.
func (l *Live) Stream(w http.ResponseWriter, r *http.Request) {
	v := l.viewers.add(time.Now())
	if v == nil {
		auth.Refuse(w, auth.Denied{Status: http.StatusServiceUnavailable, Detail: "too many streams are open, or the daemon is stopping; weir serve --live-viewers bounds them"})
		return
	}
	defer l.viewers.remove(v)
	l.begin(time.Now())
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep events until it has many
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // nothing more to read
	text, at := l.first(auth.Of(r))
	for {
		_ = control.SetWriteDeadline(time.Now().Add(writeTime))
		if _, err := w.Write(event(text)); err != nil || control.Flush() != nil || !l.await(r, v) {
			return
		}
		who := auth.Of(r)
		if at.keys = who.May(auth.Admin, ""); !who.May(auth.Watch, "") {
			return
		}
		text, at.tick = l.frame(at)
	}
}

// first returns the first message of a stream, which says who watches.
func (l *Live) first(who *auth.Identity) ([]byte, view) {
	at := view{keys: who.May(auth.Admin, "")}
	may := []string{}
	for _, scope := range []auth.Scope{auth.Metrics, auth.Admin} {
		if who.May(scope, "") {
			may = append(may, scope.String())
		}
	}
	head, _ := json.Marshal(map[string]any{"who": who.Name, "may": may}) // texts
	rest, tick := l.frame(at)
	head[len(head)-1] = ','
	return append(head, rest[1:]...), view{tick, at.keys}
}

func event(text []byte) []byte {
	return append(append([]byte("data: "), text...), "\n\n"...)
}

// await waits for the next event. It returns false if the stream has to end.
func (l *Live) await(r *http.Request, v *viewer) bool {
	for sent := time.Now(); ; {
		select {
		case <-v.news:
			if time.Since(sent) >= tick-tick/10 {
				return true
			}
		case <-v.out:
			return false
		case <-r.Context().Done():
			return false
		}
	}
}
