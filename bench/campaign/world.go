package main

import (
	"context"
	"errors"
	"fmt"
	"github.com/weirflow/weir/bench/internal/localredis"
	"regexp"
	"strconv"
	"strings"

	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

// The worlds, by number.
const (
	worldServer = iota
	worldSentinel
	worldCluster
)

var worldNames = []string{"server", "sentinel", "cluster"}

// world is the servers of one kind, and the faults that they had.
type world struct {
	number   int
	url      string
	server   *redistest.Server
	sentinel *redistest.Sentinel
	cluster  *redistest.Cluster
	slots    [lanes]int               // of a cluster, by lane
	masters  [lanes]*redistest.Server // as last seen; of the sentinels all the same
	reigns   [lanes]string            // of these masters: see reignOf
	seen     int64                    // when the last look began
	faults   []fault
	given    bool // up: the servers could not be mended
}

// fault is a fault that was caused, from its beginning until everything was well again.
type fault struct {
	Kind     string
	Detail   string
	From, To int64
	Loses    bool   // states may be lost: the table grants another burst
	Lanes    uint64 // a bit for each lane whose states may be lost
	Both     int64  // us during which an old and a new master may both have admitted
	moves    uint64 // a bit for each lane that gets another master without a loss
}

const allLanes = 1<<lanes - 1

// startWorld starts the servers. They end with the host.
func startWorld(h *localredis.Host, number int) *world {
	w := &world{number: number}
	switch number {
	case worldServer:
		w.server = redistest.Start(h, "appendonly yes", "appendfsync always")
		w.url = "redis://" + w.server.Addr
	case worldSentinel:
		w.sentinel = redistest.StartSentinel(h)
		w.url = "redis-sentinel://" + strings.Join(w.sentinel.Addrs(), ",") + "/" + redistest.MasterSet
	case worldCluster:
		w.cluster = redistest.StartCluster(h, "cluster-node-timeout 1500") // a busy machine is no dead node
		w.url = "redis-cluster://" + strings.Join(w.cluster.Addrs(), ",")
		for lane := range w.slots {
			w.slots[lane] = w.cluster.Slot(fmt.Sprintf("%s:{%d}:", prefixServer, lane))
		}
	}
	return w
}

// lanesOn returns the lanes that a node of the cluster serves.
func (w *world) lanesOn(node *redistest.Server) (set uint64) {
	for lane, slot := range w.slots {
		if w.cluster.Master(slot) == node {
			set |= 1 << lane
		}
	}
	return set
}

// look notes which servers are masters, and returns the lanes that had a failover since the last look. Two may have made
// the same server the master again. A change during the look belongs to the next one, which goes back to the beginning of
// this one.
func (w *world) look() (changed uint64) {
	begin, master := now(), (*redistest.Server)(nil)
	if w.sentinel != nil { // one for all lanes
		master = w.sentinel.Now()
	}
	reigns := map[*redistest.Server]string{nil: ""}
	for lane := range w.masters {
		if w.cluster != nil {
			master = w.cluster.Master(w.slots[lane])
		}
		if _, known := reigns[master]; !known {
			reigns[master] = reignOf(master)
		}
		switch last, reign := w.reigns[lane], reigns[master]; {
		case master != w.masters[lane]:
			changed |= 1 << lane
			w.masters[lane], w.reigns[lane] = master, reign
		case reign != "":
			if last != "" && reign != last {
				changed |= 1 << lane
			}
			w.reigns[lane] = reign
		}
	}
	w.seen = begin
	return changed
}

var replicationID = regexp.MustCompile(`master_replid:(\w+)`)

// reignOf returns a name that a master gets when it becomes one, or nothing if it does not answer.
func reignOf(master *redistest.Server) string {
	info, err := master.Ask("INFO", "replication")
	text, _ := info.(string)
	if found := replicationID.FindStringSubmatch(text); err == nil && found != nil {
		return found[1]
	}
	return ""
}

// laneSpy is a client that only looks at the keys of a call.
type laneSpy struct{ lane int }

var (
	laneOfKey = regexp.MustCompile(`\{(\d+)\}`)
	errSpy    = errors.New("only the keys are of interest")
)

func (s *laneSpy) Send(_ context.Context, command ...string) (string, error) {
	if found := laneOfKey.FindStringSubmatch(strings.Join(command, " ")); found != nil {
		s.lane, _ = strconv.Atoi(found[1])
	}
	return "", errSpy
}

// lanesOf returns the lane of each subject.
func lanesOf(all []subject) ([]int, error) {
	spy := &laneSpy{}
	engine, err := redislimit.NewWith(spy, redislimit.Options{Lanes: lanes, Prefix: prefixServer})
	if err != nil {
		return nil, err
	}
	list := make([]int, len(all))
	for i := range all {
		spy.lane = -1
		_, _ = engine.Peek(context.Background(), all[i].request(1))
		if list[i] = spy.lane; spy.lane < 0 {
			return nil, fmt.Errorf("the lane of %v is unknown", &all[i])
		}
	}
	return list, nil
}
