// Package otellimit makes OpenTelemetry metrics and spans of an engine's decisions.
//
//	telemetry, err := otellimit.New(otellimit.Options{})
//	engine, err = telemetry.Observe(engine)
//
// docs/reference/metrics.md lists the instruments. Rules are attributes. Keys are not, except on spans with
// Options.Keys.
package otellimit

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

// Options configure a Telemetry. The zero value uses the global providers.
type Options struct {
	Meters  metric.MeterProvider
	Tracers trace.TracerProvider
	// Keys adds the key to spans. Keys are often addresses or names of people. Default: no keys.
	Keys bool
	// Sample is that of layer.ObserveOptions. Default: 1, every call.
	Sample int
}

// Telemetry records decisions. It is safe for concurrent use.
type Telemetry struct {
	options                         Options
	decisions, refusals, thresholds metric.Int64Counter
	durations                       metric.Float64Histogram
	tracer                          trace.Tracer
}

const scope = "github.com/weirflow/weir"

// The attributes.
const (
	attributeRule    = "weir.rule"
	attributeResult  = "weir.result"
	attributeLimit   = "weir.limit"
	attributePercent = "weir.percent"
	attributeKey     = "weir.key"
	attributeCost    = "weir.cost"
	attributeLeft    = "weir.remaining"
)

// New returns a Telemetry. The error comes from an instrument.
func New(options Options) (*Telemetry, error) {
	if options.Meters == nil {
		options.Meters = otel.GetMeterProvider()
	}
	if options.Tracers == nil {
		options.Tracers = otel.GetTracerProvider()
	}
	meter := options.Meters.Meter(scope)
	t := &Telemetry{options: options, tracer: options.Tracers.Tracer(scope)}
	var problems [4]error
	t.decisions, problems[0] = meter.Int64Counter("weir.decisions", metric.WithDescription("Decisions by result: admitted, refused, away, left or error."))
	t.refusals, problems[1] = meter.Int64Counter("weir.refusals", metric.WithDescription("Refusals by the limit that refused."))
	t.thresholds, problems[2] = meter.Int64Counter("weir.thresholds", metric.WithDescription("Decisions by which a key reached 80 or 100 per cent of a limit."))
	t.durations, problems[3] = meter.Float64Histogram("weir.decision.duration", metric.WithUnit("s"), metric.WithDescription("Duration of decisions."),
		metric.WithExplicitBucketBoundaries(1e-6, 4e-6, 16e-6, 64e-6, 256e-6, 1e-3, 4e-3, 16e-3, 64e-3, 256e-3, 1))
	return t, errors.Join(problems[:]...)
}

// Observe returns the engine with its decisions recorded.
func (t *Telemetry) Observe(e weir.Engine) (weir.Engine, error) {
	return layer.Observe(e, layer.ObserveOptions{Decided: t.Decided, Sample: t.options.Sample})
}

// Decided records an observation, for layer.ObserveOptions. A decision in a trace is a span, with the caller's span as its
// parent.
func (t *Telemetry) Decided(ctx context.Context, o layer.Observation) {
	rule, result := attribute.String(attributeRule, o.Rule), attribute.String(attributeResult, o.Result())
	if o.Op != weir.OpPeek {
		t.count(ctx, &o, rule, result)
	}
	if trace.SpanFromContext(ctx).IsRecording() {
		t.span(ctx, &o, rule, result)
	}
}

// count counts a decision. A peek decides nothing.
func (t *Telemetry) count(ctx context.Context, o *layer.Observation, rule, result attribute.KeyValue) {
	calls := int64(o.Calls)
	t.decisions.Add(ctx, calls, metric.WithAttributes(rule, result))
	t.durations.Record(ctx, o.Took.Seconds(), metric.WithAttributes(rule))
	if o.Limit != "" {
		t.refusals.Add(ctx, calls, metric.WithAttributes(rule, attribute.String(attributeLimit, o.Limit)))
	}
	if o.Threshold > 0 {
		t.thresholds.Add(ctx, calls, metric.WithAttributes(rule, attribute.Int(attributePercent, o.Threshold)))
	}
}

func (t *Telemetry) span(ctx context.Context, o *layer.Observation, attributes ...attribute.KeyValue) {
	attributes = append(attributes, attribute.Int64(attributeCost, o.Cost))
	if o.Limit != "" {
		attributes = append(attributes, attribute.String(attributeLimit, o.Limit))
	}
	if o.Err == nil {
		attributes = append(attributes, attribute.Int64(attributeLeft, o.Decision.Remaining))
	}
	if t.options.Keys {
		attributes = append(attributes, attribute.String(attributeKey, o.Key))
	}
	_, span := t.tracer.Start(ctx, "weir "+o.Op.String(), trace.WithTimestamp(o.Began), trace.WithAttributes(attributes...))
	if o.Err != nil {
		span.SetStatus(codes.Error, o.Err.Error())
	}
	span.End(trace.WithTimestamp(o.Began.Add(o.Took)))
}
