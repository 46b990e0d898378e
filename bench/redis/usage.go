package main

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// usage is what was spent up to some instant.
type usage struct {
	client, redis, exec time.Duration
}

func (u usage) since(before usage) usage {
	return usage{client: u.client - before.client, redis: u.redis - before.redis, exec: u.exec - before.exec}
}

// usageNow asks the kernel for this process, and each Redis for itself. exec is
// the time in scripts, with what they call.
func usageNow(ctx context.Context, controls []*redis.Client) (usage, error) {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return usage{}, fmt.Errorf("getrusage: %w", err)
	}
	u := usage{client: time.Duration(own.Utime.Nano() + own.Stime.Nano())}
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
