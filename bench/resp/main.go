// Program resp measures what weir serve answers to clients of other protocols: to Redis clients beside a loop that answers without
// deciding, a Redis that runs a script for each decision (this file) and one with the module redis-cell (cell.go), to Envoy beside an
// echo (envoy.go), and over HTTP, in batches and with Redis beside the memory engine (http.go).
//
//	go run ./bench/resp               three minutes; writes bench/RESP.md
//	go run ./bench/resp -quick        a trial; prints figures that mean nothing
//	go run ./bench/resp -envoyproxy   beside envoyproxy/ratelimit (original.go), three minutes; writes bench/ENVOYPROXY.md
//
// With -envoyproxy as its first flag, it needs what go install needs to build envoyproxy/ratelimit: the Go module proxy or a module
// cache that has it. All need redis-server, and the row of redis-cell needs cargo.
package main

import (
	"bufio"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/bench/internal/localredis"
	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/workload"
)

const (
	connections = 8
	keys        = 10_000
	loopFlag    = "-answer-only" // starts the loop instead of the bench
	echoFlag    = "-echo-only"   // starts the echo instead
	figure      = "commands a second"
)

func main() {
	others := map[string]func() error{loopFlag: loop, echoFlag: echo}
	if len(os.Args) > 1 && others[os.Args[1]] != nil {
		fmt.Fprintln(os.Stderr, others[os.Args[1]]())
		os.Exit(1)
	}
	if len(os.Args) > 1 && os.Args[1] == originalFlag {
		os.Args = slices.Delete(os.Args, 1, 2)
		besideOriginal.Main()
		return
	}
	bench.Main()
}

var bench = &measure.Bench{
	Program: "bench/resp", Title: "Clients of other protocols", Report: "bench/RESP.md", Reps: 10, Window: time.Second,
	About: fmt.Sprintf(`Redis clients: %d connections ask a server of another process on the same two cores, each for %d keys at random. Every command is
admitted, and every answer is five integers that say so. The loop reads commands and answers the same five integers without
a decision. Redis runs the generic cell rate algorithm in a script of four calls, or in the module redis-cell, which the run builds.

Envoy: callers share %d connections and wait for each answer. The echo is a bare grpc-go server that answers with a message of the same
form. The CPU time is that of the server's process, and includes that of Redis where the daemon keeps its states there. On another
machine, beside such an echo and with 128 callers, envoyproxy/ratelimit (b8d893f) with its Redis took %.2f times the CPU time of the
echo, and gubernator (3182244) at its defaults %.2f times. The targets take a third and %.1f times less of these.

HTTP: callers have a connection each and wait for each answer. A decision of the daemon on Redis passes a guard, which refuses while
Redis is away.`,
		connections, keys, channels, envoyproxyOverEcho, gubernatorOverEcho, 2.5),
	Setup:   setup,
	Rows:    rows,
	Columns: []measure.Column{{Figure: figure, Format: "%.0f", More: true}, {Figure: callsASec, Format: "%.0f", More: true}, {Figure: serverCPU, Format: "%.2f"}, {Figure: median, Format: "%.0f"}},
	Targets: targets,
}

// The servers.
const (
	weirServe = "`weir serve --resp`, `CL.THROTTLE`"
	bareLoop  = "a loop that answers without deciding"
	redisGCRA = "Redis, a script"
)

// servers are asked in this order. Each has a name in a place.
var servers = []struct{ line, name string }{{weirServe, "resp"}, {bareLoop, "loop"}, {redisGCRA, "redis"}, {redisCell, "cell"}}

func group(pipeline int) string { return fmt.Sprintf("%d commands at a time", pipeline) }

func targets(rows []measure.Row) []measure.Target {
	over := func(ours, other string, pipeline int, bound float64) measure.Target {
		return measure.Target{Name: fmt.Sprintf("%s over %s, %s", ours, other, group(pipeline)), Figure: figure, Format: "%.2f ×", Bound: bound, AtLeast: true, More: true,
			Cases: []measure.Case{{Row: ours + ", " + group(pipeline), Over: []string{other + ", " + group(pipeline)}}}}
	}
	list := []measure.Target{over(weirServe, bareLoop, 1, 0.7), over(weirServe, bareLoop, 16, 0.7), over(weirServe, redisGCRA, 16, 4)}
	if slices.ContainsFunc(rows, func(r measure.Row) bool { return r.Line == redisCell }) {
		list = append(list, over(weirServe, redisCell, 16, 0.8))
	}
	return append(list, append(envoyTargets(),
		measure.Target{Name: "/v1/take on Redis with a guard, 64 connections, over memory", Figure: callsASec, Format: "%.2f ×", Bound: 0.5, AtLeast: true, More: true,
			Cases: []measure.Case{{Row: takeOnRedis + ", " + takesGroup, Over: []string{takeMemory + ", " + takesGroup}}}})...)
}

func rows(o *measure.Options) (list []measure.Row, err error) {
	at := placed(o.Place)
	for _, pipeline := range []int{1, 16} {
		for _, s := range servers {
			c := &clients{address: at[s.name], used: usage{pid: at[s.name+"-pid"]}, pipeline: pipeline, command: throttle}
			if c.address == "" { // there is no cargo
				continue
			}
			if c.used.pid == "" { // a Redis tells its own
				c.used.redis = c.address
			}
			if s.line == redisGCRA {
				c.command, c.script = evaluate, script
			}
			list = append(list, measure.Row{Group: group(pipeline), Line: s.line, Measure: c.measure})
		}
	}
	return slices.Concat(list, envoyRows(at), takeRows(at), []measure.Row{batchRow(at)}), nil
}

// placed reads a place: what is where, in pairs.
func placed(place string) map[string]string {
	at, words := map[string]string{}, strings.Fields(place)
	for i := 0; i+1 < len(words); i += 2 {
		at[words[i]] = words[i+1]
	}
	return at
}

// setup starts the servers, and returns their addresses and processes.
func setup(ctx context.Context) (place string, end func(), err error) {
	folder, err := os.MkdirTemp("", "weir-resp-")
	if err != nil {
		return "", nil, err
	}
	var ends []func()
	end = func() {
		for _, stop := range ends {
			stop()
		}
		_ = os.RemoveAll(folder)
	}
	defer func() {
		if err != nil {
			end()
		}
	}()
	program := filepath.Join(folder, "weir")
	if output, err := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/weir").CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("go build: %w\n%s", err, output)
	}
	redis, stop, err := localredis.Start("save ''")
	if err != nil {
		return "", nil, err
	}
	ends, place = append(ends, stop), "redis "+redis
	cell, stop, err := startCell(ctx, folder)
	if err != nil {
		return "", nil, err
	}
	if ends = append(ends, stop); cell != "" {
		place += " cell " + cell
	}
	config := filepath.Join(folder, "weir.yaml")
	if err := os.WriteFile(config, []byte(rules), 0o600); err != nil {
		return "", nil, err
	}
	daemon := func(name string, flags ...string) *exec.Cmd {
		return exec.Command(program, append([]string{"serve", "--http", "127.0.0.1:0", "--config", config, "--admin", "unix:" + filepath.Join(folder, name)}, flags...)...)
	}
	for _, s := range []struct {
		server *exec.Cmd
		last   string // line of what it prints
		names  map[string]string
	}{
		{daemon("a", "--resp", "127.0.0.1:0", "--grpc", "127.0.0.1:0"), "try", map[string]string{"resp": "resp", "grpc": "weir", "weir": "http"}},
		{daemon("b", "--grpc", "127.0.0.1:0", "--engine", "redis://"+redis, "--deadline", "5s", "--on-failure", "deny"), "try", map[string]string{"grpc": "shared", "weir": "shared-http"}},
		{exec.Command(os.Args[0], loopFlag), "resp", map[string]string{"resp": "loop"}},
		{exec.Command(os.Args[0], echoFlag), "grpc", map[string]string{"grpc": "echo"}},
	} {
		found, stop, err := begin(s.server, s.last)
		if err != nil {
			return "", nil, err
		}
		ends = append(ends, stop)
		for line, name := range s.names {
			place += fmt.Sprintf(" %s %s %s-pid %d", name, found[line], name, s.server.Process.Pid)
		}
	}
	return place, end, nil
}

// begin starts a server and reads where it listens from lines like "resp on ADDRESS", up to the last one.
func begin(server *exec.Cmd, last string) (found map[string]string, stop func(), err error) {
	out, err := server.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := server.Start(); err != nil {
		return nil, nil, err
	}
	stop = func() { _ = server.Process.Kill(); _ = server.Wait() }
	found = map[string]string{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		words := strings.Fields(lines.Text())
		found[strings.TrimSuffix(words[0], ":")] = words[len(words)-1]
		if strings.HasPrefix(words[0], last) {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return found, stop, nil
		}
	}
	stop()
	return nil, nil, fmt.Errorf("%s: it did not say where it listens", server.Path)
}

// clients ask one server.
type clients struct {
	address  string
	used     usage
	pipeline int
	command  func(key string) []string
	script   string // that command runs
}

func throttle(key string) []string {
	return []string{"CL.THROTTLE", key, "999999", "1000000", "1", "1"}
}

// script is the generic cell rate algorithm, in microseconds of the server's clock.
const script = `local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local interval, limit = 1000000 / ARGV[2], ARGV[1] + 1
local tat = math.max(now, tonumber(redis.call('GET', KEYS[1]) or now)) + interval
local left = limit - (tat - now) / interval
if left < 0 then return {1, limit, 0, 1, 0} end
redis.call('SET', KEYS[1], string.format('%.0f', tat), 'PX', math.ceil((tat - now) / 1000) + 1)
return {0, limit, math.floor(left), -1, math.ceil((tat - now) / 1000000)}`

func evaluate(key string) []string {
	return []string{"EVALSHA", fmt.Sprintf("%x", sha1.Sum([]byte(script))), "1", key, "999999", "1000000"}
}

// measure asks for a window.
func (c *clients) measure(ctx context.Context, o *measure.Options) (measure.Figures, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Window)
	defer cancel()
	var asked atomic.Int64
	var all sync.WaitGroup
	failed := make(chan error, connections)
	before, err := c.used.read()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for i := range connections {
		all.Go(func() {
			n, err := c.ask(ctx, uint64(i))
			asked.Add(n)
			if err != nil {
				failed <- err
			}
		})
	}
	all.Wait()
	select {
	case err := <-failed:
		return nil, err
	default:
	}
	took := time.Since(began)
	after, err := c.used.read()
	n := float64(asked.Load())
	return measure.Figures{figure: n / took.Seconds(), serverCPU: (after - before) / n}, err
}

// ask sends batches over one connection, and checks every answer.
func (c *clients) ask(ctx context.Context, seed uint64) (asked int64, err error) {
	conn, err := net.Dial("tcp", c.address)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	batches := c.batches(seed)
	in := bufio.NewReaderSize(conn, 64<<10)
	if c.script != "" {
		if _, err := conn.Write(encode(nil, "SCRIPT", "LOAD", c.script)); err != nil {
			return 0, err
		}
		for range 2 { // lines of the answer
			if _, err := in.ReadSlice('\n'); err != nil {
				return 0, err
			}
		}
	}
	for ctx.Err() == nil {
		if _, err := conn.Write(batches[int(asked)/c.pipeline%len(batches)]); err != nil {
			return asked, err
		}
		for range c.pipeline {
			if err := admitted(in); err != nil {
				return asked, err
			}
			asked++
		}
	}
	return asked, nil
}

// batches encodes commands beforehand.
func (c *clients) batches(seed uint64) (all [][]byte) {
	drawn := workload.Uniform(keys, 64*c.pipeline, seed)
	for i := range 64 {
		var batch []byte
		for j := range c.pipeline {
			batch = encode(batch, c.command(drawn.Key(i*c.pipeline+j))...)
		}
		all = append(all, batch)
	}
	return all
}

func encode(b []byte, words ...string) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(words))
	for _, word := range words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(word), word)
	}
	return b
}

// admitted reads five integers, of which the first is 0.
func admitted(in *bufio.Reader) error {
	for i := range 6 {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if i == 0 && string(line) != "*5\r\n" || i == 1 && string(line) != ":0\r\n" {
			return fmt.Errorf("answer %q, want five integers and an admission", line)
		}
	}
	return nil
}

// loop answers each command with five integers: the least that a server in Go does.
func loop() error {
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("resp on", on.Addr())
	for {
		conn, err := on.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer func() { _ = conn.Close() }()
			if err := answer(conn); !errors.Is(err, io.EOF) {
				fmt.Fprintln(os.Stderr, err)
			}
		}()
	}
}

func answer(conn net.Conn) error {
	in, out := bufio.NewReader(conn), bufio.NewWriter(conn)
	for {
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
		for range 1 + 2*6 { // the lines of a command of six words
			if _, err := in.ReadSlice('\n'); err != nil {
				return err
			}
		}
		if _, err := out.WriteString("*5\r\n:0\r\n:1000000\r\n:999999\r\n:-1\r\n:1\r\n"); err != nil {
			return err
		}
	}
}
