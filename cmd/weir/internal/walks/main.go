// Command walks makes calls of Weir, each once it is warm, and writes which code of ours they passed. Command
// internal/house builds it with coverage, and counts:
//
//	walks FOLDER
//
// The folder gets a folder for each walk, with its name in the file name, and a folder for each repetition.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/coverage"
	"strconv"
	"time"
)

const (
	warmUp      = 100 // calls before a walk is recorded
	repetitions = 8   // what only some of them pass belongs to another goroutine
)

// settled is the time in which a server ends a call whose answer has arrived.
const settled = 10 * time.Millisecond

// walk is a call that is made again and again.
type walk struct {
	name string
	call func(ctx context.Context) error
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "walks:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d arguments, want the folder to write to", len(args))
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	redis, err := startRedis(ctx)
	if err != nil {
		return err
	}
	defer redis.end()
	walks, err := allWalks(ctx, redis)
	if err != nil {
		return err
	}
	for i, w := range walks {
		if err := w.record(ctx, filepath.Join(args[0], strconv.Itoa(i))); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

func allWalks(ctx context.Context, redis *server) (all []walk, err error) {
	for _, room := range []func(context.Context, *server) ([]walk, error){memoryWalks, redisWalks, daemonWalks} {
		walks, err := room(ctx, redis)
		if err != nil {
			return nil, err
		}
		all = append(all, walks...)
	}
	return all, nil
}

func (w walk) record(ctx context.Context, folder string) error {
	for range warmUp {
		if err := w.call(ctx); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "name"), []byte(w.name), 0o644); err != nil {
		return err
	}
	for i := range repetitions {
		to := filepath.Join(folder, strconv.Itoa(i))
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
		if err := w.recordOnce(ctx, to); err != nil {
			return err
		}
	}
	return nil
}

func (w walk) recordOnce(ctx context.Context, folder string) error {
	time.Sleep(settled)
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	if err := w.call(ctx); err != nil {
		return err
	}
	time.Sleep(settled)
	if err := coverage.WriteCountersDir(folder); err != nil {
		return err
	}
	return coverage.WriteMetaDir(folder)
}
