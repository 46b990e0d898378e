package redistest

import (
	"testing"
	"time"

	"github.com/weirflow/weir/internal/testprocess"
)

// StartWithClock starts one server whose clock [Server.SetClock] moves.
func StartWithClock(t testing.TB, config ...string) *Server {
	t.Helper()
	clock := testprocess.NewClock(t, t.TempDir())
	return start(t, &Server{clock: clock, env: clock.Env}, config)
}

// SetClock sets the clock of a server of [StartWithClock] ahead of the machine's clock, or behind it.
func (s *Server) SetClock(ahead time.Duration) {
	s.t.Helper()
	s.clock.Set(ahead)
}
