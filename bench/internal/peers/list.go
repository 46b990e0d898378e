package peers

import uber "go.uber.org/ratelimit"

// Names that the targets use.
const (
	Loop        = "loop"
	FloorGCRA   = "floor_gcra_cas"
	FloorTable  = "floor_table"
	XTimeRate   = "x_time_rate"
	Sethvargo   = "sethvargo_memorystore"
	OursLimiter = "weir_limiter_"
	OursKeyed   = "weir_keyed_"
	OursMemory  = "weir_memory_"
)

// Singles returns the limiters of one subject.
func Singles() []Peer {
	list := []Peer{{Name: Loop, New: loop}, {Name: FloorGCRA, Kind: Floor, New: newGCRAFloor}}
	for _, a := range append(algorithms[:len(algorithms):len(algorithms)], guava...) {
		list = append(list, a.peer(OursLimiter, newLimiter(a.limit)))
	}
	return append(list,
		Peer{Name: OursLimiter + "wait", Kind: Ours, New: newLimiterWait},
		Peer{Name: XTimeRate, Kind: Exact, New: newXTimeRate},
		Peer{Name: "uber_noslack", Kind: Exact, New: newUber(uber.WithoutSlack), AllowedOnly: true},
		Peer{Name: "uber_slack10", Kind: Exact, New: newUber(), AllowedOnly: true},
		Peer{Name: "juju", Kind: Exact, New: newJuju},
		Peer{Name: "failsafe_smooth", Kind: Exact, New: newFailsafeSmooth},
		Peer{Name: "failsafe_bursty", Kind: Exact, New: newFailsafeBursty},
		Peer{Name: "slidingwindow", Kind: Approximate, New: newSlidingWindow},
	)
}

// Keyeds returns the limiters of many subjects.
func Keyeds() []Peer {
	list := []Peer{{Name: Loop, New: loop}, {Name: FloorTable, Kind: Floor, New: newTableFloor}}
	for _, a := range algorithms {
		if a.overKeyed {
			list = append(list, a.peer(OursKeyed, newKeyed(a.limit)))
		}
	}
	list = append(list, Peer{Name: OursKeyed + "wait", Kind: Ours, New: newKeyedWait})
	for _, a := range algorithms {
		list = append(list, a.peer(OursMemory, newMemory(a.limit)))
	}
	return append(list,
		Peer{Name: "mutex_map+x_rate", Kind: Exact, New: newMutexMap},
		Peer{Name: "rwmutex_map+x_rate", Kind: Exact, New: newRWMutexMap},
		Peer{Name: "sync.Map+x_rate", Kind: Exact, New: newSyncMap},
		Peer{Name: Sethvargo, Kind: Exact, New: newMemoryStore},
		Peer{Name: "ulule_memory", Kind: Exact, New: newUlule},
		Peer{Name: "throttled_memstore", Kind: Exact, New: newThrottled, Tolerated: 0.10, Flaw: "gives up with an error after ten lost compare-and-swaps on one key"},
		Peer{Name: "tollbooth_v7", Kind: Exact, New: newTollbooth},
		Peer{Name: "httprate_counter", Kind: Approximate, New: newHTTPRate},
	)
}

// peer describes one of Weir's algorithms.
func (a algorithm) peer(prefix string, construct func(Limit) (Limiter, error)) Peer {
	p := Peer{Name: prefix + a.name, Kind: Ours, New: construct}
	switch a.name {
	case "leakybucket", "rategate", "cycle", "concurrency":
		p.Brief = true
	}
	switch a.name {
	case "rategate", "bursty", "warmup":
		p.Tolerated, p.Flaw = 0.50, "refuses a call whose clock reading is before that of the preceding call"
	}
	return p
}
