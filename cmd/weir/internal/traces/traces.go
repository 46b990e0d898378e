// Package traces adds the spans of a daemon to the traces of its callers, and sends them to an OpenTelemetry collector as
// OTLP over HTTP in JSON.
//
// A request with the header field traceparent of a sampled trace becomes a span, a call over gRPC with such metadata, too, and so does each of its decisions. Other
// requests cost one look at their header. The exporters of OpenTelemetry would add 4 MB for one JSON document.
package traces

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/weirflow/weir/layer"
)

// Tracer sends spans. It is safe for concurrent use.
type Tracer struct {
	// Service has attributes of the resource, by their names in OpenTelemetry. Do not change it after the first span. Default:
	// service.name is weir.
	Service map[string]string
	url     string
	client  *http.Client
	spans   chan *span
	dropped atomic.Uint64
	warn    func(message string, args ...any)
}

// mostSpans bounds the spans that wait for the collector. Further ones are dropped and counted.
const mostSpans = 4096

// New returns a tracer for the address of a collector, such as http://127.0.0.1:4318. It warns while that takes no spans.
func New(collector string, warn func(message string, args ...any)) *Tracer {
	return &Tracer{url: collector + "/v1/traces", client: &http.Client{Timeout: sendTimeout}, spans: make(chan *span, mostSpans), warn: warn}
}

// parent is the context of spans within a span.
type parent struct{ trace, span string }

type parentKey struct{}

// HTTP makes a span of each request of a sampled trace. known reports whether a path is one of the few that next serves.
func (t *Tracer) HTTP(next http.Handler, known func(path string) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, sampled := readParent(r.Header["Traceparent"])
		if !sampled {
			next.ServeHTTP(w, r)
			return
		}
		s := newSpan(from, r.Method+" other", kindServer, time.Now())
		if known(r.URL.Path) {
			s.Name = r.Method + " " + r.URL.Path
		}
		defer t.end(s)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), parentKey{}, &parent{s.TraceID, s.SpanID})))
	})
}

// Unary makes a span of each call over gRPC of a sampled trace.
func (t *Tracer) Unary(ctx context.Context, call any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	from, sampled := readParent(metadata.ValueFromIncomingContext(ctx, "traceparent"))
	if !sampled {
		return next(ctx, call)
	}
	s := newSpan(from, strings.TrimPrefix(info.FullMethod, "/"), kindServer, time.Now())
	defer t.end(s)
	answer, err := next(context.WithValue(ctx, parentKey{}, &parent{s.TraceID, s.SpanID}), call)
	if err != nil {
		s.Status = &status{Code: statusError}
	}
	return answer, err
}

// Decided makes a span of a decision within a span. It has no key.
func (t *Tracer) Decided(ctx context.Context, o layer.Observation) {
	from, ok := ctx.Value(parentKey{}).(*parent)
	if !ok {
		return
	}
	s := newSpan(from, "weir "+o.Op.String(), kindInternal, o.Began)
	s.add("weir.rule", o.Rule)
	s.add("weir.result", o.Result())
	if o.Limit != "" {
		s.add("weir.limit", o.Limit)
	}
	if o.Err != nil {
		s.Status = &status{Code: statusError}
	}
	t.end(s)
}

// end ends a span now and queues it.
func (t *Tracer) end(s *span) {
	s.End = strconv.FormatInt(time.Now().UnixNano(), 10)
	select {
	case t.spans <- s:
	default:
		t.dropped.Add(1)
	}
}

// readParent reads the header field traceparent of W3C Trace Context. It returns false unless the trace is sampled.
func readParent(values []string) (*parent, bool) {
	if len(values) != 1 || len(values[0]) < 55 {
		return nil, false
	}
	v := values[0]
	flags, err := strconv.ParseUint(v[53:55], 16, 8)
	if v[2] != '-' || v[35] != '-' || v[52] != '-' || v[:2] == "ff" || len(v) > 55 && (v[:2] == "00" || v[55] != '-') || err != nil || flags&1 == 0 {
		return nil, false
	}
	p := &parent{v[3:35], v[36:52]}
	return p, isID(p.trace) && isID(p.span)
}

// isID reports whether a text is an identity in lower-case hexadecimal digits that is not zero.
func isID(text string) bool {
	zero := true
	for i := range len(text) {
		c := text[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
		zero = zero && c == '0'
	}
	return !zero
}
