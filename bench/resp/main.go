// Program resp measures weir serve --resp beside a loop that answers without deciding, and beside a Redis that runs a script for
// each decision.
//
//	go run ./bench/resp          a minute; writes bench/RESP.md
//	go run ./bench/resp -quick   a trial; prints figures that mean nothing
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
	figure      = "commands a second"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == loopFlag {
		fmt.Fprintln(os.Stderr, loop())
		os.Exit(1)
	}
	bench.Main()
}

var bench = &measure.Bench{
	Program: "bench/resp", Title: "Redis clients", Report: "bench/RESP.md", Reps: 10, Window: time.Second,
	About: fmt.Sprintf(`%d connections ask a server of another process on the same two cores, each for %d keys at random. Every command is
admitted, and every answer is five integers that say so. The loop reads commands and answers the same five integers without
a decision. Redis runs the generic cell rate algorithm in a script of four calls.`, connections, keys),
	Setup:   setup,
	Rows:    rows,
	Columns: []measure.Column{{Figure: figure, Format: "%.0f", More: true}},
	Targets: targets,
}

// The servers.
const (
	weirServe = "`weir serve --resp`, `CL.THROTTLE`"
	bareLoop  = "a loop that answers without deciding"
	redisGCRA = "Redis, a script"
)

var servers = []string{weirServe, bareLoop, redisGCRA}

func group(pipeline int) string { return fmt.Sprintf("%d commands at a time", pipeline) }

func targets([]measure.Row) []measure.Target {
	over := func(ours, other string, pipeline int, bound float64) measure.Target {
		return measure.Target{Name: fmt.Sprintf("%s over %s, %s", ours, other, group(pipeline)), Figure: figure, Format: "%.2f ×", Bound: bound, AtLeast: true, More: true,
			Cases: []measure.Case{{Row: ours + ", " + group(pipeline), Over: []string{other + ", " + group(pipeline)}}}}
	}
	return []measure.Target{over(weirServe, bareLoop, 1, 0.7), over(weirServe, bareLoop, 16, 0.7), over(weirServe, redisGCRA, 16, 4)}
}

func rows(o *measure.Options) (list []measure.Row, err error) {
	addresses := strings.Fields(o.Place)
	for _, pipeline := range []int{1, 16} {
		for i, name := range servers {
			c := &clients{address: addresses[i], pipeline: pipeline, command: throttle}
			if name == redisGCRA {
				c.command, c.script = evaluate, script
			}
			list = append(list, measure.Row{Group: group(pipeline), Line: name, Measure: c.measure})
		}
	}
	return list, nil
}

// setup starts the servers, and returns their addresses.
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
	for _, server := range []*exec.Cmd{
		exec.Command(program, "serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--admin", "unix:"+filepath.Join(folder, "admin.sock")),
		exec.Command(os.Args[0], loopFlag),
	} {
		address, stop, err := begin(server)
		if err != nil {
			return "", nil, err
		}
		ends = append(ends, stop)
		place += address + " "
	}
	address, stop, err := localredis.Start("save ''")
	if err != nil {
		return "", nil, err
	}
	ends = append(ends, stop)
	return place + address, end, nil
}

// begin starts a server that prints "resp on ADDRESS".
func begin(server *exec.Cmd) (address string, stop func(), err error) {
	out, err := server.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := server.Start(); err != nil {
		return "", nil, err
	}
	stop = func() { _ = server.Process.Kill(); _ = server.Wait() }
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if at, ok := strings.CutPrefix(lines.Text(), "resp on "); ok {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return at, stop, nil
		}
	}
	stop()
	return "", nil, fmt.Errorf("%s: it did not say where it listens", server.Path)
}

// clients ask one server.
type clients struct {
	address  string
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
	return measure.Figures{figure: float64(asked.Load()) / time.Since(began).Seconds()}, nil
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
