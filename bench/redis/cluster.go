package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirflow/weir/bench/internal/localredis"
)

const (
	masters = 3
	slots   = 16384
)

// cluster is three masters of the bench, each with a third of the slots, without replicas.
type cluster struct{ servers []*localredis.Server }

func startCluster(ctx context.Context) (*cluster, error) {
	c := &cluster{}
	var buses []int
	for range masters {
		bus, err := localredis.FreePort()
		if err != nil {
			c.end()
			return nil, err
		}
		s, err := localredis.Start(ctx, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus))
		if err != nil {
			c.end()
			return nil, err
		}
		c.servers, buses = append(c.servers, s), append(buses, bus)
	}
	if err := c.join(ctx, buses); err != nil {
		c.end()
		return nil, fmt.Errorf("cluster: %w", err)
	}
	return c, nil
}

// join assigns the slots and connects the servers.
func (c *cluster) join(ctx context.Context, buses []int) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for i, s := range c.servers {
		control, end := dialGoRedis(s.Addr)
		defer end()
		if err := control.ClusterAddSlotsRange(ctx, slots*i/masters, slots*(i+1)/masters-1).Err(); err != nil {
			return err
		}
		for j, other := range c.servers[:i] {
			host, port, _ := strings.Cut(other.Addr, ":")
			if err := control.Do(ctx, "CLUSTER", "MEET", host, port, buses[j]).Err(); err != nil {
				return err
			}
		}
	}
	for _, s := range c.servers {
		control, end := dialGoRedis(s.Addr)
		defer end()
		if err := awaitWell(ctx, control); err != nil {
			return err
		}
	}
	return nil
}

// awaitWell returns when a server knows all others and all slots.
func awaitWell(ctx context.Context, control *redis.Client) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		info, err := control.ClusterInfo(ctx).Result()
		if err != nil {
			return err
		}
		if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", masters)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("a server does not find the others: %w\n%s", ctx.Err(), info)
		case <-tick.C:
		}
	}
}

func (c *cluster) addrs() (addrs []string) {
	for _, s := range c.servers {
		addrs = append(addrs, s.Addr)
	}
	return addrs
}

func (c *cluster) end() {
	for _, s := range c.servers {
		s.End()
	}
}
