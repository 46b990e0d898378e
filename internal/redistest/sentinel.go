package redistest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// MasterSet is the name of the master in the sentinels' configuration.
const MasterSet = "weir"

// Sentinel is a master, a replica and three sentinels. The sentinels promote the replica when the master has been
// gone for 500 ms.
type Sentinel struct {
	Master, Replica *Server // as at the start
	Sentinels       []*Server
	t               testing.TB
}

// StartSentinel returns when each sentinel knows the other sentinels and the replica.
func StartSentinel(t testing.TB, config ...string) *Sentinel {
	t.Helper()
	config = append([]string{"repl-diskless-sync-delay 0"}, config...)
	s := &Sentinel{t: t, Master: Start(t, config...)}
	s.Replica = Start(t, append(config, fmt.Sprintf("replicaof 127.0.0.1 %d", s.Master.Port))...)
	s.await("the replica follows", s.Replica.follows)
	for range 3 {
		s.Sentinels = append(s.Sentinels, start(t, &Server{sentinel: true}, []string{
			fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", MasterSet, s.Master.Port),
			fmt.Sprintf("sentinel down-after-milliseconds %s 500", MasterSet),
			fmt.Sprintf("sentinel failover-timeout %s 3000", MasterSet),
		}))
	}
	s.await("the sentinels know each other", s.ready)
	return s
}

// AwaitReady returns when the replica follows the master and each sentinel knows both. It serves tests that exchange
// Master and Replica after a failover, for another one.
func (s *Sentinel) AwaitReady() {
	s.t.Helper()
	s.await("the replica follows", s.Replica.follows)
	s.await("the sentinels know each other", s.ready)
}

// Addrs returns the addresses of the sentinels.
func (s *Sentinel) Addrs() (addrs []string) {
	for _, sentinel := range s.Sentinels {
		addrs = append(addrs, sentinel.Addr)
	}
	return addrs
}

// AwaitPromotion returns when the replica says that it is a master, while the old one may still be a master, too. It
// returns the last instant when the replica was none.
func (s *Sentinel) AwaitPromotion() (before time.Time) {
	s.t.Helper()
	s.await("the replica is promoted", func() error {
		asked := time.Now()
		err := s.Replica.says("role:master")
		if err != nil || before.IsZero() {
			before = asked
		}
		return err
	})
	return before
}

// AwaitFailover returns when the replica is the master and every sentinel reports it.
func (s *Sentinel) AwaitFailover() {
	s.t.Helper()
	s.await("the replica is the master", func() error {
		for _, sentinel := range s.Sentinels {
			reply, err := sentinel.Ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterSet)
			if err != nil {
				return err
			}
			if got, want := fmt.Sprint(reply), fmt.Sprintf("[127.0.0.1 %d]", s.Replica.Port); got != want {
				return fmt.Errorf("%s says that the master is %s, want %s", sentinel.Addr, got, want)
			}
		}
		return s.Replica.says("role:master")
	})
}

// Now returns the server that the sentinels name as the master, Master or Replica.
func (s *Sentinel) Now() *Server {
	s.t.Helper()
	for _, sentinel := range s.Sentinels {
		reply, err := sentinel.Ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterSet)
		if err == nil && fmt.Sprint(reply) == fmt.Sprintf("[127.0.0.1 %d]", s.Replica.Port) {
			return s.Replica
		}
	}
	return s.Master
}

func (s *Sentinel) await(what string, try func() error) {
	s.t.Helper()
	if err := eventually(patienceOf(s.t), try, nil); err != nil {
		s.t.Fatalf("redistest: sentinel: waiting until %s: %v", what, err)
	}
}

func (s *Sentinel) ready() error {
	for _, sentinel := range s.Sentinels {
		reply, err := sentinel.Ask("SENTINEL", "MASTER", MasterSet)
		if err != nil {
			return err
		}
		list, _ := reply.([]any)
		fields := map[any]any{}
		for i := 0; i+1 < len(list); i += 2 {
			fields[list[i]] = list[i+1]
		}
		if fields["num-slaves"] != "1" || fields["num-other-sentinels"] != "2" || fields["flags"] != "master" {
			return fmt.Errorf("%s knows %v replicas and %v other sentinels, flags %v", sentinel.Addr, fields["num-slaves"], fields["num-other-sentinels"], fields["flags"])
		}
	}
	return nil
}

func (s *Server) follows() error { return s.says("master_link_status:up") }

// says returns nil if INFO replication contains the line.
func (s *Server) says(line string) error {
	info, err := s.Ask("INFO", "replication")
	if err != nil {
		return err
	}
	if text, _ := info.(string); !strings.Contains(text, line+"\r") {
		return fmt.Errorf("%s does not say %s", s.Addr, line)
	}
	return nil
}
