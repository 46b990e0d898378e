package resp

import (
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// listen starts a daemon on loopback, for clients of others.
func listen(t *testing.T) (address string) {
	d := start(t, nil)
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = on.Close() })
	go func() { _ = d.Serve(on) }()
	return on.Addr().String()
}

func TestGoRedisAsksInBothProtocols(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		client := redis.NewClient(&redis.Options{Addr: listen(t), Protocol: protocol})
		defer client.Close()
		got, err := client.Do(t.Context(), "CL.THROTTLE", "user:1", 15, 30, 60, 1).Int64Slice()
		if err != nil || len(got) != 5 || got[0] != 0 || got[2] != 15 {
			t.Errorf("protocol %d: got %v and %v", protocol, got, err)
		}
		pipe := client.Pipeline()
		for range 20 {
			pipe.Do(t.Context(), "WEIR.TAKE", "login", "bob")
		}
		answers, err := pipe.Exec(t.Context())
		if err != nil || len(answers) != 20 {
			t.Fatalf("protocol %d: got %d answers and %v", protocol, len(answers), err)
		}
		for i, answer := range answers {
			if allowed, err := answer.(*redis.Cmd).Int64Slice(); err != nil || (allowed[0] == 1) != (i < 5) {
				t.Errorf("protocol %d: answer %d is %v, %v", protocol, i, allowed, err)
			}
		}
		if n, err := client.Del(t.Context(), "user:1").Result(); n != 1 || err != nil {
			t.Errorf("protocol %d: DEL got %d, %v", protocol, n, err)
		}
	}
}

func TestRueidisAsks(t *testing.T) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{listen(t)}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ask := client.B().Arbitrary("CL.THROTTLE").Keys("user:1").Args("15", "30", "60").Build()
	got, err := client.Do(t.Context(), ask).AsIntSlice()
	if err != nil || len(got) != 5 || got[2] != 15 {
		t.Errorf("got %v and %v", got, err)
	}
}

// run runs a program against the daemon and returns what it prints.
func run(t *testing.T, name string, args ...string) string {
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

func TestRedisCliAndBenchmarkAsk(t *testing.T) {
	_, port, _ := net.SplitHostPort(listen(t))
	if got := strings.Fields(run(t, "redis-cli", "-p", port, "CL.THROTTLE", "user:1", "15", "30", "60", "1")); strings.Join(got, " ") != "0 16 15 -1 2" {
		t.Errorf("redis-cli printed %q", got)
	}
	if got := run(t, "redis-cli", "-3", "-p", port, "HELLO", "3"); !strings.Contains(got, "weir") {
		t.Errorf("redis-cli -3 printed %q", got)
	}
	out := run(t, "redis-benchmark", "-p", port, "-n", "2000", "-c", "5", "-r", "100", "-P", "16", "-q", "CL.THROTTLE", "user:__rand_int__", "15", "30", "60")
	if !strings.Contains(out, "requests per second") || strings.Contains(out, "rror") {
		t.Errorf("redis-benchmark printed %q", out)
	}
}

func TestRedisPyAsks(t *testing.T) {
	const debian = "/usr/bin/python3" // another one may come first, without the package python3-redis
	_, port, _ := net.SplitHostPort(listen(t))
	program := "import redis; r = redis.Redis(port=" + port + "); print(r.execute_command('CL.THROTTLE', 'user:1', 15, 30, 60, 1), r.ping())"
	if got := strings.TrimSpace(run(t, debian, "-c", program)); got != "[0, 16, 15, -1, 2] True" {
		t.Errorf("redis-py printed %q", got)
	}
}
