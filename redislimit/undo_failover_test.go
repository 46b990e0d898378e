package redislimit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// movedSender is a client whose server is replaced by one without its states. The steps say what happens to one call
// after the other: the old server answers it, or only after release, or its answer is lost, or it refuses it as a replica.
// Later calls reach the new server.
type movedSender struct {
	old, next *redistest.Server
	release   chan struct{}

	mu    sync.Mutex
	steps []string
}

func (s *movedSender) Send(_ context.Context, command ...string) (string, error) {
	s.mu.Lock()
	server, step := s.next, ""
	if len(s.steps) > 0 {
		server, step, s.steps = s.old, s.steps[0], s.steps[1:]
	}
	s.mu.Unlock()
	if step == "refused" {
		return "", senderError{errors.New("READONLY You can't write against a read only replica.")}
	}
	if command[0] == "EVALSHA" {
		command[0], command[1] = "EVAL", wire.Script().Source
	}
	reply, err := server.Ask(command...)
	if err != nil {
		return "", senderError{err}
	}
	if step == "late" {
		<-s.release
	}
	if step == "lost" {
		return "", errors.New("the connection was cut")
	}
	text, _ := reply.(string)
	return text, nil
}

// A take is undone after a failover to a server that does not know it. Nothing comes back there: other callers took what
// counts there.
func TestAnUndoAfterAFailoverBringsBackNothing(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"token bucket 10/300d burst 10", "fixed window 10/300d", "sliding log 10/300d", "rate gate 10/300d", "concurrency 10 lease 1h"} {
		for _, tt := range []struct {
			name      string
			lanes     int
			steps     []string
			abandoned uint64
		}{
			{"a late answer, and an undo that the old server refuses", 1, []string{"late", "refused"}, 1},
			{"a lane that fails, and undos that the old server refuses", 2, []string{"answered", "lost", "refused", "refused"}, 0},
			{"a lane that fails, and undos that reach the new server", 2, []string{"answered", "lost"}, 0},
		} {
			name := limit + ": " + tt.name
			s := &movedSender{old: redistest.Start(t), next: redistest.Start(t), release: make(chan struct{}), steps: tt.steps}
			engine, err := NewWith(s, Options{OneSlot: true, Lanes: 8})
			if err != nil {
				t.Fatal(err)
			}
			other, err := NewWith(&movedSender{next: s.next}, Options{OneSlot: true, Lanes: 8})
			if err != nil {
				t.Fatal(err)
			}
			rule := mustRule(t, "r="+limit)
			requests := []weir.Request{rule.For("a", 4), rule.For("b", 4)}[:tt.lanes]
			take := func(ctx context.Context) error { _, err := engine.Take(ctx, requests...); return err }
			if tt.steps[0] == "late" {
				err = AskAndLeave(t, engine, take)
			} else {
				err = take(t.Context())
			}
			if weir.WasCounted(err) == weir.CountedNo {
				t.Fatalf("%s: Take: %v, want an error that may have counted", name, err)
			}
			for _, q := range requests {
				if d, err := doCall(t.Context(), other, weir.Call{Lease: 7}, q); err != nil || !d.Allowed {
					t.Fatalf("%s: Take on the new server: %+v, %v", name, d, err)
				}
			}
			close(s.release)
			eventually(t, name+": the undo ends", func() error {
				if stats := engine.Stats(); stats.Undoing > 0 || stats.InFlight > 0 || stats.Abandoned != tt.abandoned {
					return fmt.Errorf("%+v, want %d undos given up", stats, tt.abandoned)
				}
				return nil
			})
			for _, q := range requests {
				if d, err := other.Peek(t.Context(), rule.For(q.Key, 0)); err != nil || d.Remaining != 6 {
					t.Errorf("%s: %d of 10 units are left on the new server, of which 4 were taken there (%v)", name, d.Remaining, err)
				}
			}
			engine.Close()
		}
	}
}
