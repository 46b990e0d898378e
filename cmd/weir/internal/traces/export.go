package traces

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// span is a span in the JSON of OTLP.
type span struct {
	TraceID    string      `json:"traceId"`
	SpanID     string      `json:"spanId"`
	ParentID   string      `json:"parentSpanId"`
	Name       string      `json:"name"`
	Kind       int         `json:"kind"`
	Start      string      `json:"startTimeUnixNano"`
	End        string      `json:"endTimeUnixNano"`
	Attributes []attribute `json:"attributes,omitempty"`
	Status     *status     `json:"status,omitempty"`
}

type attribute struct {
	Key   string `json:"key"`
	Value struct {
		Text string `json:"stringValue"`
	} `json:"value"`
}

type status struct {
	Code int `json:"code"`
}

// The numbers of OTLP.
const (
	kindInternal = 1
	kindServer   = 2
	statusError  = 2
)

func newSpan(from *parent, name string, kind int, start time.Time) *span {
	return &span{TraceID: from.trace, SpanID: newID(), ParentID: from.span, Name: name, Kind: kind, Start: strconv.FormatInt(start.UnixNano(), 10)}
}

func (s *span) add(key, text string) {
	a := attribute{Key: key}
	a.Value.Text = text
	s.Attributes = append(s.Attributes, a)
}

const (
	sendEvery   = time.Second
	sendTimeout = 5 * time.Second
	mostSent    = 512 // spans in a request
	warnEvery   = time.Minute
	lastTime    = 500 * time.Millisecond // for requests under way when the daemon ends, and for one more
)

// Run sends spans until the context ends, and then those that wait, in one attempt. A collector that does not answer holds
// up the end by at most lastTime.
func (t *Tracer) Run(ctx context.Context) {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastTime, stop) })()
	tick := time.NewTicker(sendEvery)
	defer tick.Stop()
	var warned time.Time
	for {
		select {
		case <-ctx.Done():
			if err := t.send(sending); err != nil || t.dropped.Load() > 0 {
				t.warnOfLost(err)
			}
			return
		case <-tick.C:
		}
		err := error(nil)
		for err == nil && len(t.spans) > 0 {
			err = t.send(sending)
		}
		if dropped := t.dropped.Load(); (err != nil || dropped > 0) && time.Since(warned) >= warnEvery {
			warned = time.Now()
			t.warnOfLost(err)
		}
	}
}

func (t *Tracer) warnOfLost(err error) {
	t.warn("spans are lost: the collector of --otlp does not take them", "error", err, "spans", t.dropped.Swap(0))
}

// send sends up to mostSent spans. Those that the collector does not take are dropped.
func (t *Tracer) send(ctx context.Context) (err error) {
	var spans []*span
	for len(spans) < mostSent && len(t.spans) > 0 { // no other goroutine receives
		spans = append(spans, <-t.spans)
	}
	if len(spans) == 0 {
		return nil
	}
	defer func() {
		if err != nil {
			t.dropped.Add(uint64(len(spans)))
		}
	}()
	body, err := json.Marshal(map[string]any{"resourceSpans": []any{map[string]any{
		"resource":   map[string]any{"attributes": t.resource()},
		"scopeSpans": []any{map[string]any{"scope": map[string]string{"name": "github.com/weirflow/weir"}, "spans": spans}},
	}}})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := t.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.CopyN(io.Discard, response.Body, 64<<10) // so that the connection can be used again
	if response.StatusCode/100 != 2 {
		return &refusedError{response.Status}
	}
	return nil
}

// resource says who sends spans.
func (t *Tracer) resource() (all []attribute) {
	service := map[string]string{"service.name": "weir"}
	maps.Copy(service, t.Service)
	for _, name := range slices.Sorted(maps.Keys(service)) {
		a := attribute{Key: name}
		a.Value.Text = service[name]
		all = append(all, a)
	}
	return all
}

// refusedError is the error of spans that a collector refuses.
type refusedError struct{ status string }

func (e *refusedError) Error() string { return "traces: send: the collector answered " + e.status }

func newID() string {
	var id [8]byte
	for n, i := 1+rand.Uint64N(1<<63), 0; i < len(id); i++ { // never zero
		id[i] = byte(n >> (8 * i))
	}
	return hex.EncodeToString(id[:])
}
