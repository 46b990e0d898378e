package serve

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/metrics"
	"github.com/weirflow/weir/cmd/weir/internal/traces"
)

// traceOptions are the flags of traces.
type traceOptions struct {
	collector string            // empty for none
	service   map[string]string // that spans are of
	tracer    *traces.Tracer    // nil for none
}

func (o *traceOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.collector, "otlp", "", "send spans to the OpenTelemetry collector at `URL`, for requests of sampled traces")
	cli.Offer(cmd, "otlp", "http://127.0.0.1:4318")
}

func (o *traceOptions) check() error {
	if o.collector == "" {
		return nil
	}
	to, err := url.Parse(o.collector)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" || to.RawQuery != "" || to.Fragment != "" {
		return cli.Misusef("name a collector that takes OTLP over HTTP: --otlp http://127.0.0.1:4318", "--otlp: not the URL of a collector")
	}
	return nil
}

// begin sends spans until end. It returns the handler of the traffic with its requests traced.
func (o *traceOptions) begin(traffic http.Handler, known func(path string) bool, seen *metrics.Metrics, log *slog.Logger) (traced http.Handler, end func()) {
	if o.collector == "" {
		return traffic, func() {}
	}
	tracer := traces.New(strings.TrimSuffix(o.collector, "/"), log.Warn)
	tracer.Service, o.tracer = o.service, tracer
	seen.Trace(tracer.Decided)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tracer.Run(ctx)
	}()
	return tracer.HTTP(traffic, known), func() {
		stop()
		<-ended
	}
}

// calls makes spans of calls over gRPC, or is nil.
func (o *traceOptions) calls() grpc.UnaryServerInterceptor {
	if o.tracer == nil {
		return nil
	}
	return o.tracer.Unary
}
