package simulate

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// Scenario is how a comparison tries its limits. Only Length is required, unless the traffic is a log.
type Scenario struct {
	// Length is how long requests come. Default: the length of the longest log of the traffic, up to weir.MaxPeriod.
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
	// Sticky is the number of daemons behind a proxy that sends each client always to the same one, by consistent
	// hashing. Each holds the whole limits of its clients. It needs PerClient and excludes Processes. Default: none.
	Sticky int
	// Lose ends one process or daemon at this instant. Its waiting callers are refused. Other processes keep their
	// shares, and other daemons take its clients, who start afresh there. Default: none is lost.
	Lose time.Duration
	// Return brings it back at this instant, with nothing in memory. Default: never.
	Return time.Duration
	// Server serves the admitted requests, one after the other in the order that they go ahead, at this rate. A
	// request of cost n takes n times as long as one of cost 1. Default: no server.
	Server weir.Rate
	// Progress, if not nil, receives the number of requests decided so far and the total, from time to time.
	Progress func(done, of int64)
	// Attempts, if not nil, receives each attempt as it is answered, of one limit after the other. Default: none.
	Attempts func(Attempt)
}

// Attempt is one attempt of a request, and its answer.
type Attempt struct {
	Limit    int           // the place of the limit among those that Compare tries
	At       time.Time     // virtual: the windows of limits begin by it
	After    time.Duration // since the start of the traffic
	Client   int           // from 0
	Cost     int64
	Retries  int // how often the client has come back with this request
	Decision weir.Decision
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
	case s.Lose > 0 && s.Processes < 2 && s.Sticky < 2:
		return fmt.Errorf("simulate: a process is lost at %v: want 2 processes or daemons at least", s.Lose)
	case s.Return != 0 && (s.Lose == 0 || s.Return <= s.Lose):
		return fmt.Errorf("simulate: a process returns at %v and is lost at %v: want it lost before", s.Return, s.Lose)
	case s.Sticky < 0 || s.Sticky > maxProcesses:
		return fmt.Errorf("simulate: %d daemons are not within 1 and %d", s.Sticky, maxProcesses)
	case s.Sticky > 0 && (s.Processes > 1 || !s.PerClient):
		return fmt.Errorf("simulate: %d daemons by client: want a limit for each client, and no processes beside them", s.Sticky)
	case s.Server != weir.Rate{} && (s.Server.Count < 1 || s.Server.Period < 1 || s.Server.Period > weir.MaxPeriod):
		return fmt.Errorf("simulate: a server cannot serve %v", s.Server)
	}
	return nil
}
