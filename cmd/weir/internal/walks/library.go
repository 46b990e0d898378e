package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
	"github.com/weirflow/weir/redislimit"
)

var errRefused = errors.New("refused")

func memoryWalks(context.Context, *server) ([]walk, error) {
	limiter, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(1_000_000), Burst: 1_000_000})
	if err != nil {
		return nil, err
	}
	requests, err := twoRequests()
	if err != nil {
		return nil, err
	}
	memory := weir.NewMemory(weir.MemoryOptions{})
	return []walk{
		{"Limiter.Allow", func(context.Context) error {
			if !limiter.Allow() {
				return errRefused
			}
			return nil
		}},
		{"Memory.Take, two rules with two keys", take(memory, requests)},
	}, nil
}

func redisWalks(_ context.Context, redis *server) ([]walk, error) {
	requests, err := twoRequests()
	if err != nil {
		return nil, err
	}
	engine, err := redislimit.Open(redis.url(), redislimit.Options{})
	if err != nil {
		return nil, err
	}
	queue, err := pace.NewQueue(engine, pace.QueueOptions{})
	if err != nil {
		return nil, err
	}
	vendor, err := weir.ParseRule("vendor=token bucket 12/s burst 1") // a caller waits for the one before it, though it comes when that has settled
	if err != nil {
		return nil, err
	}
	return []walk{
		{"Take on Redis", take(engine, requests[:1])},
		{"Queue.Wait on Redis, admitted at once", wait(queue, requests[0])},
		{"Queue.Wait on Redis, admitted later", wait(queue, vendor.For("acme", 1))},
	}, nil
}

func wait(queue *pace.Queue, request weir.Request) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := queue.Wait(ctx, request)
		return err
	}
}

// twoRequests returns requests of two rules with two keys, which are admitted.
func twoRequests() ([]weir.Request, error) {
	login, err := weir.ParseRule("login=token bucket 1000000/s burst 1000000")
	if err != nil {
		return nil, err
	}
	tenant, err := weir.ParseRule("tenant=fixed window 1000000/m")
	if err != nil {
		return nil, err
	}
	return []weir.Request{login.For("alice", 1), tenant.For("acme", 1)}, nil
}

func take(engine interface {
	Take(ctx context.Context, requests ...weir.Request) (weir.Decision, error)
}, requests []weir.Request,
) func(context.Context) error {
	return func(ctx context.Context) error {
		d, err := engine.Take(ctx, requests...)
		if err == nil && !d.Allowed {
			err = errRefused
		}
		return err
	}
}

// server is a redis-server that ends with the program.
type server struct {
	socket string
	folder string
	cmd    *exec.Cmd
}

func (s *server) url() string { return "unix://" + s.socket }

func startRedis(ctx context.Context) (*server, error) {
	folder, err := os.MkdirTemp("", "weir-walks")
	if err != nil {
		return nil, err
	}
	s := &server{socket: filepath.Join(folder, "redis"), folder: folder}
	s.cmd = exec.CommandContext(ctx, "redis-server", "--port", "0", "--unixsocket", s.socket, "--dir", folder, "--save", "")
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for ctx.Err() == nil {
		if engine, err := redislimit.Open(s.url(), redislimit.Options{}); err == nil {
			engine.Close()
			return s, nil
		}
		time.Sleep(settled)
	}
	s.end()
	return nil, fmt.Errorf("redis-server does not start: %w", ctx.Err())
}

func (s *server) end() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.folder)
}
