package otellimit_test

import (
	"context"
	"errors"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/otellimit"
)

// observed returns an engine whose decisions are metrics, and spans within those of its callers.
func observed(engine weir.Engine, options otellimit.Options) (weir.Engine, error) {
	telemetry, err := otellimit.New(options)
	if err != nil {
		return nil, err
	}
	return telemetry.Observe(engine)
}

func mustRule(t *testing.T, text string) *weir.Rule {
	t.Helper()
	r, err := weir.ParseRule(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestDecisionsAreMetrics(t *testing.T) {
	reader := metric.NewManualReader()
	e, err := observed(weir.NewMemory(weir.MemoryOptions{}), otellimit.Options{Meters: metric.NewMeterProvider(metric.WithReader(reader))})
	if err != nil {
		t.Fatal(err)
	}
	for range 12 {
		_, _ = e.Take(t.Context(), mustRule(t, "login=fixed window 10/366d").For("alice", 1))
	}
	var got metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	sums := map[string]int64{}
	for _, m := range got.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				sums[m.Name+" "+p.Attributes.Encoded(attribute.DefaultEncoder())] = p.Value
			}
		case metricdata.Histogram[float64]:
			sums[m.Name] = int64(data.DataPoints[0].Count)
		}
	}
	for name, want := range map[string]int64{
		"weir.decisions weir.result=admitted,weir.rule=login":           10,
		"weir.decisions weir.result=refused,weir.rule=login":            2,
		"weir.refusals weir.limit=fixed window 10/366d,weir.rule=login": 2,
		"weir.thresholds weir.percent=80,weir.rule=login":               1,
		"weir.thresholds weir.percent=100,weir.rule=login":              3,
		"weir.decision.duration":                                        12,
	} {
		if sums[name] != want {
			t.Errorf("%s is %d, want %d, of %v", name, sums[name], want, sums)
		}
	}
}

func TestADecisionInATraceIsASpan(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracers := trace.NewTracerProvider(trace.WithSpanProcessor(spans))
	memory, away := weir.NewMemory(weir.MemoryOptions{}), errors.New("connection refused")
	fails := false
	e, err := observed(weir.Wrap(memory, func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
		if fails {
			return weir.Answer{}, away
		}
		return next(ctx, call)
	}), otellimit.Options{Tracers: tracers, Keys: true})
	if err != nil {
		t.Fatal(err)
	}
	rule := mustRule(t, "login=10/1h")
	_, _ = e.Take(t.Context(), rule.For("alice", 1)) // outside of a trace
	ctx, parent := tracers.Tracer("test").Start(t.Context(), "request")
	_, _ = e.Take(ctx, rule.For("alice", 2))
	fails = true
	_, _ = e.Take(ctx, rule.For("alice", 2))
	parent.End()
	ended := spans.Ended()
	if len(ended) != 3 {
		t.Fatalf("got %d spans, want the parent and two decisions", len(ended))
	}
	for i, span := range ended[:2] {
		if span.Name() != "weir take" || span.Parent().SpanID() != parent.SpanContext().SpanID() || !span.EndTime().After(span.StartTime()) {
			t.Errorf("span %d is %s of %v to %v", i, span.Name(), span.StartTime(), span.EndTime())
		}
	}
	want := attribute.NewSet(attribute.String("weir.rule", "login"), attribute.String("weir.result", "admitted"), attribute.Int64("weir.cost", 2),
		attribute.Int64("weir.remaining", 7), attribute.String("weir.key", "alice"))
	if got := attribute.NewSet(ended[0].Attributes()...); !got.Equals(&want) {
		t.Errorf("got the attributes %v, want %v", ended[0].Attributes(), want.ToSlice())
	}
	if got := ended[1].Status(); got.Code != codes.Error || got.Description != away.Error() {
		t.Errorf("got the status %v, want the error", got)
	}
}
