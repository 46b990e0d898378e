package redistest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/weirflow/weir/internal/testprocess"
)

const (
	masters = 3
	slots   = 16384

	soon = "500"   // a node timeout that lets nodes find one another, and notice a death
	calm = "15000" // that of the time between
)

// Cluster is three masters with one replica each. A node takes another for dead after 15 s of silence, so a busy machine
// is no dead node. During AwaitFailover it is 500 ms, and the cluster replaces a dead master within about two seconds.
type Cluster struct {
	Nodes []*Server // the masters, and then their replicas in the same order
	own   bool      // the test has set the node timeout
	t     testing.TB
}

// StartCluster starts a cluster of six nodes, each of whose masters holds a third of the slots. It returns when every
// node reports a healthy cluster.
func StartCluster(t testing.TB, config ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t, own: strings.Contains(strings.Join(config, "\n"), "cluster-node-timeout")}
	for range 2 * masters {
		own := []string{
			"cluster-enabled yes",
			"cluster-config-file nodes.conf",
			"cluster-node-timeout " + soon,
			"cluster-replica-validity-factor 0",
			"repl-diskless-sync-delay 0",
			fmt.Sprintf("cluster-port %d", testprocess.FreePort(t)),
		}
		c.Nodes = append(c.Nodes, start(t, &Server{}, append(own, config...)))
	}
	c.join()
	c.setNodeTimeout(calm)
	return c
}

// setNodeTimeout sets after how many milliseconds of silence the running nodes take another for dead, unless the test has set it.
func (c *Cluster) setNodeTimeout(ms string) {
	c.t.Helper()
	for _, node := range c.Nodes {
		if !c.own && !node.process.Ended() {
			node.Do("CONFIG", "SET", "cluster-node-timeout", ms)
		}
	}
}

// join connects the nodes to one cluster.
func (c *Cluster) join() {
	c.t.Helper()
	first := c.Nodes[0]
	for i, node := range c.Nodes {
		node.Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		if i < masters {
			from, to := slots*i/masters, slots*(i+1)/masters-1
			node.Do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(from), strconv.Itoa(to))
		}
		if i > 0 {
			bus, _ := node.Do("CONFIG", "GET", "cluster-port").([]any)
			first.Do("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(node.Port), bus[1].(string))
		}
	}
	c.await("all nodes know each other", c.everyNodeKnowsAll)
	for i, replica := range c.Nodes[masters:] {
		replica.Do("CLUSTER", "REPLICATE", c.Nodes[i].id())
	}
	c.AwaitHealth()
}

// AwaitHealth returns when every running node reports a healthy cluster and every replica follows its master.
func (c *Cluster) AwaitHealth() {
	c.t.Helper()
	c.await("every node is well", func() error {
		for _, node := range c.Nodes {
			if node.process.Ended() {
				continue
			}
			if err := node.isWell(); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *Cluster) await(what string, try func() error) {
	c.t.Helper()
	if err := eventually(patienceOf(c.t), try, nil); err != nil {
		c.t.Fatalf("redistest: cluster: waiting until %s: %v", what, err)
	}
}

func (c *Cluster) everyNodeKnowsAll() error {
	for _, node := range c.Nodes {
		text, err := ask(node.Addr, "CLUSTER", "NODES")
		if err != nil {
			return err
		}
		known, _ := text.(string)
		if strings.Count(known, "connected") < len(c.Nodes) || strings.Contains(known, "handshake") || strings.Contains(known, "disconnected") {
			return fmt.Errorf("%s knows:\n%s", node.Addr, known)
		}
	}
	return nil
}

// isWell returns nil if the node reports a healthy cluster and, as a replica, follows its master.
func (s *Server) isWell() error {
	state, err := ask(s.Addr, "CLUSTER", "INFO")
	if err != nil {
		return err
	}
	if text, _ := state.(string); !strings.Contains(text, "cluster_state:ok") {
		return fmt.Errorf("%s says:\n%s", s.Addr, text)
	}
	if s.says("role:slave") == nil {
		return s.follows()
	}
	return nil
}

func (s *Server) id() string {
	s.t.Helper()
	id, _ := s.Do("CLUSTER", "MYID").(string)
	return id
}

// Addrs returns the addresses of all nodes, the original masters first.
func (c *Cluster) Addrs() (addrs []string) {
	for _, node := range c.Nodes {
		addrs = append(addrs, node.Addr)
	}
	return addrs
}

// Slot returns the slot of a key.
func (c *Cluster) Slot(key string) int {
	c.t.Helper()
	for _, node := range c.Nodes {
		if slot, err := node.Ask("CLUSTER", "KEYSLOT", key); err == nil {
			return int(slot.(int64))
		}
	}
	c.t.Fatal("redistest: cluster: no node answers")
	return 0
}

// Master returns the node that serves the slot, according to the running nodes.
func (c *Cluster) Master(slot int) *Server {
	c.t.Helper()
	for _, node := range c.Nodes {
		if node.process.Ended() {
			continue
		}
		ranges, err := node.Ask("CLUSTER", "SLOTS")
		if err != nil {
			continue
		}
		if port := masterPort(ranges, slot); port != 0 {
			return c.onPort(port)
		}
	}
	c.t.Fatalf("redistest: cluster: no node knows who serves slot %d", slot)
	return nil
}

// ReplicaOf returns a running node that follows the master, or nil.
func (c *Cluster) ReplicaOf(master *Server) *Server {
	for _, node := range c.Nodes {
		if !node.process.Ended() && node.says("role:slave") == nil && node.says("master_port:"+strconv.Itoa(master.Port)) == nil {
			return node
		}
	}
	return nil
}

// masterOf returns the master that a node follows, or the node.
func (c *Cluster) masterOf(node *Server) *Server {
	for _, other := range c.Nodes {
		if node.says("role:slave") == nil && node.says("master_port:"+strconv.Itoa(other.Port)) == nil {
			return other
		}
	}
	return node
}

// masterPort reads a reply to CLUSTER SLOTS. It returns 0 if the reply does not contain the slot.
func masterPort(ranges any, slot int) int {
	list, _ := ranges.([]any)
	for _, item := range list {
		entry := item.([]any) // from, to, master, replicas
		if int(entry[0].(int64)) <= slot && slot <= int(entry[1].(int64)) {
			return int(entry[2].([]any)[1].(int64))
		}
	}
	return 0
}

func (c *Cluster) onPort(port int) *Server {
	c.t.Helper()
	for _, node := range c.Nodes {
		if node.Port == port {
			return node
		}
	}
	c.t.Fatalf("redistest: cluster: no node listens on port %d", port)
	return nil
}

// AwaitFailover returns when every running node reports a healthy cluster, with another node for the slots of the dead
// one.
func (c *Cluster) AwaitFailover(gone *Server) {
	c.t.Helper()
	c.setNodeTimeout(soon)
	defer c.setNodeTimeout(calm)
	c.await("the replica is the master", func() error {
		for _, node := range c.Nodes {
			if node.process.Ended() {
				continue
			}
			ranges, err := ask(node.Addr, "CLUSTER", "SLOTS")
			if err != nil {
				return err
			}
			for _, item := range ranges.([]any) {
				if port := item.([]any)[2].([]any)[1]; port == int64(gone.Port) {
					return fmt.Errorf("%s says that %s is a master", node.Addr, gone.Addr)
				}
			}
		}
		return nil
	})
	c.AwaitHealth()
}
