package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	descriptor "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirflow/weir/cmd/weir/internal/program"
)

const daemonRules = `rules:
  - name: login
    match: {method: POST, path: /login}
    key: client
    limit: 1000000/s
  - name: address
    match: {domain: shop, descriptor.remote_address: "*"}
    key: descriptor.remote_address
    limit: 1000000/s
`

// daemonWalks asks a daemon of this process, which ends with it.
func daemonWalks(_ context.Context, redis *server) ([]walk, error) {
	config, socket := filepath.Join(redis.folder, "weir.yaml"), filepath.Join(redis.folder, "grpc")
	if err := os.WriteFile(config, []byte(daemonRules), 0o600); err != nil {
		return nil, err
	}
	url, err := startDaemon("serve", "--http", "127.0.0.1:0", "--grpc", "unix:"+socket, "--config", config)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	return []walk{
		{"POST /v1/take by attributes", func(ctx context.Context) error { return post(ctx, url+"/v1/take") }},
		{"a call of Envoy's rate limit service", func(ctx context.Context) error { return ask(ctx, rls.NewRateLimitServiceClient(conn)) }},
	}, nil
}

// startDaemon returns the URL of a daemon with the arguments.
func startDaemon(args ...string) (url string, err error) {
	out, in := io.Pipe()
	var complaints strings.Builder
	go func() {
		program.Run(args, strings.NewReader(""), in, &complaints)
		_ = in.CloseWithError(fmt.Errorf("the daemon ended: %s", complaints.String()))
	}()
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	if err != nil {
		return "", err
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return strings.TrimSpace(strings.TrimPrefix(line, "weir listens on ")), nil
}

func post(ctx context.Context, url string) error {
	const body = `{"attributes":{"method":"POST","path":"/login","client":"192.0.2.1"}}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && !strings.Contains(string(text), `"allowed":true`) {
		err = fmt.Errorf("status %d: %s", answer.StatusCode, text)
	}
	return err
}

func ask(ctx context.Context, client rls.RateLimitServiceClient) error {
	answer, err := client.ShouldRateLimit(ctx, &rls.RateLimitRequest{
		Domain: "shop",
		Descriptors: []*descriptor.RateLimitDescriptor{{
			Entries: []*descriptor.RateLimitDescriptor_Entry{{Key: "remote_address", Value: "192.0.2.1"}},
		}},
	})
	if err == nil && answer.OverallCode != rls.RateLimitResponse_OK {
		err = errRefused
	}
	return err
}
