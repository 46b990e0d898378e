package redistest

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAKilledServerComesBackEmptyOnItsPort(t *testing.T) {
	s := Start(t)
	s.Do("SET", "key", "value")
	if got := s.Do("GET", "key"); got != "value" {
		t.Fatalf("GET key = %v, want value", got)
	}
	s.Kill()
	if _, err := s.Ask("PING"); err == nil {
		t.Fatal("PING answers after Kill, want an error")
	}
	s.Restart()
	if got := s.Do("GET", "key"); got != nil {
		t.Errorf("GET key = %v after a restart, want nothing: nothing is kept on disk", got)
	}
}

func TestAServerThatKeepsAFileRemembersAfterAKill(t *testing.T) {
	s := Start(t, "appendonly yes", "appendfsync always")
	s.Do("SET", "key", "value")
	s.Kill()
	s.Restart()
	if got := s.Do("GET", "key"); got != "value" {
		t.Errorf("GET key = %v after a restart, want value", got)
	}
}

func TestAStoppedServerAnswersOnlyWhenItContinues(t *testing.T) {
	s := Start(t)
	s.Stop()
	answered := make(chan error, 1)
	go func() {
		_, err := s.Ask("PING")
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("PING to a stopped server answered, error %v", err)
	case <-time.After(50 * time.Millisecond): // far longer than an answer takes
	}
	s.Cont()
	if err := <-answered; err != nil {
		t.Errorf("PING after Cont: %v", err)
	}
}

func TestFlushedScriptsAreUnknown(t *testing.T) {
	s := Start(t)
	sha, _ := s.Do("SCRIPT", "LOAD", "return 1").(string)
	if got := s.Do("EVALSHA", sha, "0"); got != int64(1) {
		t.Fatalf("EVALSHA = %v, want 1", got)
	}
	s.FlushScripts()
	if _, err := s.Ask("EVALSHA", sha, "0"); err == nil || !strings.HasPrefix(err.Error(), "NOSCRIPT") {
		t.Errorf("EVALSHA after FlushScripts: %v, want NOSCRIPT", err)
	}
}

func TestAClusterReplacesADeadMaster(t *testing.T) {
	c := StartCluster(t)
	slot := c.Slot("key")
	old := c.Master(slot)
	if i := slices.Index(c.Nodes, old); i < 0 || i >= masters {
		t.Fatalf("the master of slot %d is node %d, want one of the first %d", slot, i, masters)
	}
	old.Kill()
	c.AwaitFailover(old)
	c.Master(slot).Do("SET", "key", "value")
}

func TestAMovingSlotAnswersAskThenMoved(t *testing.T) {
	c := StartCluster(t)
	slot := c.Slot("{tag}a")
	from := c.Master(slot)
	to := c.Nodes[(slices.Index(c.Nodes, from)+1)%masters]
	from.Do("SET", "{tag}a", "1")
	move := c.BeginMove(slot, to)
	if got := from.Do("GET", "{tag}a"); got != "1" {
		t.Errorf("GET of a key not yet moved = %v, want 1", got)
	}
	if moved := move.Keys(10); moved != 1 {
		t.Errorf("%d keys moved, want 1", moved)
	}
	if _, err := from.Ask("GET", "{tag}a"); err == nil || !strings.HasPrefix(err.Error(), "ASK ") {
		t.Errorf("GET of a key that has moved: %v, want ASK", err)
	}
	move.Finish()
	if _, err := from.Ask("GET", "{tag}a"); err == nil || !strings.HasPrefix(err.Error(), "MOVED ") {
		t.Errorf("GET after the slot has moved: %v, want MOVED", err)
	}
	if got := to.Do("GET", "{tag}a"); got != "1" {
		t.Errorf("GET at the new master = %v, want 1", got)
	}
}

func TestSentinelPutsTheReplicaInTheMastersPlace(t *testing.T) {
	s := StartSentinel(t)
	s.Master.Kill()
	s.AwaitFailover()
	s.Replica.Do("SET", "key", "value")
}
