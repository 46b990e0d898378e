package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// usage is what was spent up to some instant.
type usage struct {
	client, redis, exec time.Duration
	busy                time.Duration // of all processors, by whomever; 0 if the system does not say it
}

func (u usage) since(before usage) usage {
	return usage{client: u.client - before.client, redis: u.redis - before.redis, exec: u.exec - before.exec, busy: u.busy - before.busy}
}

// others is the share of the processors that was spent by neither this process
// nor the servers.
func (u usage) others(took time.Duration) float64 {
	return max(0, float64(u.busy-u.client-u.redis)/float64(took)/float64(runtime.NumCPU()))
}

// usageNow asks the kernel for this process and for all, and each Redis for itself. exec is
// the time in scripts, with what they call.
func usageNow(ctx context.Context, controls []*redis.Client) (usage, error) {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return usage{}, fmt.Errorf("getrusage: %w", err)
	}
	u := usage{client: time.Duration(own.Utime.Nano() + own.Stime.Nano()), busy: busy()}
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

// busy is how long all processors have worked, or were kept by another system:
// the first line of /proc/stat, in hundredths of a second, without what was idle.
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
