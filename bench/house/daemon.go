package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	descriptor "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
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

// asked returns what asks a daemon with the flags.
func (b *built) asked(call func(ctx context.Context, url, socket string, calls int) error, flags []string) func(string, int) error {
	return func(counters string, calls int) error {
		config, socket := filepath.Join(b.folder, "weir.yaml"), filepath.Join(b.folder, "grpc")
		if err := os.WriteFile(config, []byte(daemonRules), 0o600); err != nil {
			return err
		}
		c := exec.Command(b.program, append([]string{"serve", "--http", "127.0.0.1:0", "--grpc", "unix:" + socket, "--config", config}, flags...)...)
		c.Env = append(os.Environ(), "GOCOVERDIR="+counters)
		out, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			return err
		}
		lines := bufio.NewReader(out)
		line, err := lines.ReadString('\n')
		go func() { _, _ = io.Copy(io.Discard, lines) }()
		if err == nil {
			err = call(context.Background(), strings.TrimSpace(strings.TrimPrefix(line, "weir listens on ")), socket, calls)
		}
		_ = c.Process.Signal(syscall.SIGTERM)
		if ended := c.Wait(); err == nil {
			err = ended
		}
		return err
	}
}

func post(ctx context.Context, url, _ string, calls int) error {
	const body = `{"attributes":{"method":"POST","path":"/login","client":"192.0.2.1"}}`
	for range calls {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/take", strings.NewReader(body))
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || !strings.Contains(string(text), `"allowed":true`) {
			return fmt.Errorf("status %d: %s, %v", answer.StatusCode, text, err)
		}
	}
	return nil
}

func ask(ctx context.Context, _, socket string, calls int) error {
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	for range calls {
		answer, err := rls.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, &rls.RateLimitRequest{
			Domain: "shop",
			Descriptors: []*descriptor.RateLimitDescriptor{{
				Entries: []*descriptor.RateLimitDescriptor_Entry{{Key: "remote_address", Value: "192.0.2.1"}},
			}},
		})
		if err != nil || answer.OverallCode != rls.RateLimitResponse_OK {
			return fmt.Errorf("answered %v, %v", answer, err)
		}
	}
	return nil
}
