package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirflow/weir/bench/internal/measure"
)

// usage is the processor time spent in a window, or up to an instant.
type usage struct {
	client, redis, exec time.Duration // exec is the time in scripts, including the commands that they call
	busy                time.Duration // of all processors and all programs; 0 if unknown
	took                time.Duration
}

// others returns the share of the processors that other programs than this process and the servers used.
func (u usage) others() float64 {
	return max(0, float64(u.busy-u.client-u.redis)/float64(u.took)/float64(runtime.NumCPU()))
}

// spend returns what a window spends.
func spend(ctx context.Context, controls []*redis.Client, run func() error) (usage, error) {
	before, err := usageNow(ctx, controls)
	if err != nil {
		return usage{}, err
	}
	began := time.Now()
	if err := run(); err != nil {
		return usage{}, err
	}
	took := time.Since(began)
	u, err := usageNow(ctx, controls)
	return usage{u.client - before.client, u.redis - before.redis, u.exec - before.exec, u.busy - before.busy, took}, err
}

// usageNow reads the usage of this process and of all processors from the kernel, and that of each Redis from INFO.
func usageNow(ctx context.Context, controls []*redis.Client) (usage, error) {
	u := usage{client: measure.ProcessorTime(), busy: busy()}
	for _, control := range controls {
		if err := u.addRedis(ctx, control); err != nil {
			return usage{}, err
		}
	}
	return u, nil
}

func (u *usage) addRedis(ctx context.Context, control *redis.Client) error {
	text, err := control.Info(ctx, "cpu", "commandstats").Result()
	if err != nil {
		return fmt.Errorf("INFO: %w", err)
	}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		switch name {
		case "used_cpu_sys", "used_cpu_user":
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return fmt.Errorf("INFO cpu: %q: %w", lines.Text(), err)
			}
			u.redis += time.Duration(seconds * float64(time.Second))
		case "cmdstat_eval", "cmdstat_evalsha", "cmdstat_evalsha_ro":
			var calls, us int64
			if _, err := fmt.Sscanf(value, "calls=%d,usec=%d", &calls, &us); err != nil {
				return fmt.Errorf("INFO commandstats: %q: %w", lines.Text(), err)
			}
			u.exec += time.Duration(us) * time.Microsecond
		}
	}
	return lines.Err()
}

// busy returns the time in which the processors worked or another system held them: the first line of /proc/stat, in
// hundredths of a second, without idle time.
func busy() time.Duration {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(content), "\n")
	const idle, waiting, stolen = 3, 4, 7
	var sum int64
	for i, field := range strings.Fields(strings.TrimPrefix(line, "cpu ")) {
		if n, err := strconv.ParseInt(field, 10, 64); err == nil && i != idle && i != waiting && i <= stolen {
			sum += n
		}
	}
	return time.Duration(sum) * 10 * time.Millisecond
}
