package pace_test

import (
	"testing"

	"github.com/weirflow/weir/internal/waittest"
	"github.com/weirflow/weir/pace"
)

func newServer(t *testing.T) *waittest.Server {
	t.Helper()
	return waittest.NewServer(mustMemory(t))
}

// queuesOn returns a server and the queues of processes on it.
func queuesOn(t *testing.T, n int) (*waittest.Server, []*pace.Queue) {
	t.Helper()
	s := newServer(t)
	var queues []*pace.Queue
	for range n {
		queues = append(queues, mustQueue(t, s.Connect(waittest.Network{})))
	}
	return s, queues
}
