package simulate

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// Scenario is how a comparison tries its candidates. Only Length is required.
type Scenario struct {
	// Length is the time in which requests come.
	Length time.Duration
	// Seed decides all random draws. Equal seeds give equal results.
	Seed uint64
	// PerClient gives each client a limit of its own. Default: all clients share one.
	PerClient bool
	// Wait lets a caller wait in line, in order of arrival, for up to this time. Default: it is refused at once.
	Wait time.Duration
	// Processes is the number of processes that take requests in turn. Each holds its share of the limit and knows
	// nothing of the others. Default: one.
	Processes int
	// Lose ends one process at this instant. Its waiting callers are refused, and the others keep their shares.
	// Default: none is lost.
	Lose time.Duration
	// Server serves the admitted requests, one after the other in the order in which they go ahead, at this rate. A
	// request of cost n takes n times as long as one of cost 1. Default: no server.
	Server weir.Rate
	// Progress, if not nil, receives the number of requests decided so far and the total, from time to time.
	Progress func(done, of int64)
}

const maxProcesses = 1000

func (s *Scenario) check() error {
	switch {
	case s.Wait < 0 || s.Wait > weir.MaxPeriod:
		return fmt.Errorf("simulate: a wait of %v is not within 0 and %d days", s.Wait, weir.MaxPeriod/(24*time.Hour))
	case s.Processes < 0 || s.Processes > maxProcesses:
		return fmt.Errorf("simulate: %d processes are not within 1 and %d", s.Processes, maxProcesses)
	case s.Lose < 0:
		return fmt.Errorf("simulate: a process cannot be lost at %v", s.Lose)
	case s.Lose > 0 && s.Processes < 2:
		return fmt.Errorf("simulate: a process is lost at %v: want 2 processes or more", s.Lose)
	case s.Server != weir.Rate{} && (s.Server.Count < 1 || s.Server.Period < 1 || s.Server.Period > weir.MaxPeriod):
		return fmt.Errorf("simulate: a server cannot serve %v", s.Server)
	}
	return nil
}
