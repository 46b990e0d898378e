package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/weirflow/weir/bench/internal/localredis"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/internal/testprocess"
)

const (
	originalProgram = "github.com/envoyproxy/ratelimit/src/service_cmd"
	originalVersion = "v1.4.1-0.20260122083618-3fb702589d36" // what @latest was on 29 November 2026
)

// originalRules are in the form of envoyproxy/ratelimit, which both read. The window of a year does not end during a run, so that
// what is left says how often a key was asked for.
var originalRules = fmt.Sprintf(`domain: shop
descriptors:
  - {key: user, rate_limit: {unit: year, requests_per_unit: %d}}
  - {key: few, rate_limit: {unit: year, requests_per_unit: %d}}
`, high, low)

// setupOriginal starts Redis and the servers, and returns their addresses and processes.
func setupOriginal(ctx context.Context) (place string, end func(), err error) {
	h := &localredis.Host{}
	if err = localredis.Recovered(func() { place = startOriginal(ctx, h) }); err != nil {
		h.Close()
	}
	return place, h.Close, err
}

func startOriginal(ctx context.Context, h *localredis.Host) (place string) {
	folder := h.TempDir()
	config := filepath.Join(folder, "config")
	must(os.Mkdir(config, 0o755))
	must(os.WriteFile(filepath.Join(config, "shop.yaml"), []byte(originalRules), 0o600))
	run(ctx, nil, "go", "build", "-o", filepath.Join(folder, "weir"), "./cmd/weir")
	run(ctx, []string{"GOWORK=off", "GOBIN=" + folder}, "go", "install", originalProgram+"@"+originalVersion)

	redis := redistest.Start(h, "save ''").Addr
	place = "redis " + redis
	add := func(name, address string, server *exec.Cmd, stop func()) {
		h.Cleanup(stop)
		if err := refusesAbove(ctx, address, name); err != nil {
			h.Fatalf("%s: %v", name, err)
		}
		place += fmt.Sprintf(" %s %s %s-pid %d", name, address, name, server.Process.Pid)
	}
	for name, pool := range map[string]string{"theirs": "10", "wide": "64"} { // 10 is the default
		server, address := originalServer(h, folder, redis, pool)
		must(server.Start())
		add(name, address, server, func() { _ = server.Process.Kill(); _ = server.Wait() })
	}
	server := exec.Command(filepath.Join(folder, "weir"), "serve", "--compat", "envoyproxy", "--config", config, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0",
		"--admin", "unix:"+filepath.Join(folder, "admin"), "--engine", "redis://"+redis, "--deadline", "5s")
	found, stop, err := begin(server, "try")
	must(err)
	add("ours", found["grpc"], server, stop)
	return place
}

// originalServer is the command of envoyproxy/ratelimit, and where it will listen.
func originalServer(h *localredis.Host, folder, redis, pool string) (server *exec.Cmd, address string) {
	port := testprocess.FreePort(h)
	server = exec.Command(filepath.Join(folder, filepath.Base(originalProgram)))
	server.Env = []string{
		"DISABLE_STATS=true", "LOG_LEVEL=error", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + redis, "REDIS_POOL_SIZE=" + pool,
		"RUNTIME_ROOT=" + folder, "RUNTIME_WATCH_ROOT=false", "HOST=127.0.0.1", "DEBUG_HOST=127.0.0.1", "GRPC_HOST=127.0.0.1",
		fmt.Sprintf("PORT=%d", testprocess.FreePort(h)), fmt.Sprintf("DEBUG_PORT=%d", testprocess.FreePort(h)), fmt.Sprintf("GRPC_PORT=%d", port),
	}
	server.Stderr = os.Stderr
	return server, fmt.Sprintf("127.0.0.1:%d", port)
}

// run runs a command with more in its environment.
func run(ctx context.Context, environment []string, words ...string) {
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.Env = append(os.Environ(), environment...)
	if output, err := c.CombinedOutput(); err != nil {
		localredis.Fail(fmt.Errorf("%v: %w\n%s", words, err, output))
	}
}

// must ends the setup with an error.
func must(err error) {
	if err != nil {
		localredis.Fail(err)
	}
}
