package peers

import uber "go.uber.org/ratelimit"

// Names that the targets use.
const (
	Loop        = "loop"
	FloorGCRA   = "floor_gcra_cas"
	FloorTable  = "floor_table"
	XTimeRate   = "x_time_rate"
	OursLimiter = "weir_limiter_"
	OursKeyed   = "weir_keyed_"
	OursMemory  = "weir_memory_"
	OursCached  = OursLimiter + "cached"
)

// Singles returns the limiters of one subject.
func Singles() []SinglePeer {
	list := []SinglePeer{
		{Info{Name: Loop}, func(Limit) (Single, error) { return noopSingle{}, nil }},
		{Info{Name: FloorGCRA, Kind: Floor}, newGCRAFloor},
	}
	for _, a := range append(algorithms[:len(algorithms):len(algorithms)], guava...) {
		list = append(list, SinglePeer{a.info(OursLimiter), newLimiter(a.limit)})
	}
	return append(list,
		SinglePeer{Info{Name: OursCached, Kind: Ours}, newCached},
		SinglePeer{Info{Name: OursLimiter + "wait", Kind: Ours}, newLimiterWait},
		SinglePeer{rival(XTimeRate, "golang.org/x/time"), newXTimeRate},
		SinglePeer{blocking(rival("uber_noslack", "go.uber.org/ratelimit")), newUber(uber.WithoutSlack)},
		SinglePeer{blocking(rival("uber_slack10", "go.uber.org/ratelimit")), newUber()},
		SinglePeer{rival("juju", "github.com/juju/ratelimit"), newJuju},
		SinglePeer{rival("failsafe_smooth", "github.com/failsafe-go/failsafe-go"), newFailsafeSmooth},
		SinglePeer{rival("failsafe_bursty", "github.com/failsafe-go/failsafe-go"), newFailsafeBursty},
		SinglePeer{approximate(rival("slidingwindow", "github.com/RussellLuo/slidingwindow")), newSlidingWindow},
	)
}

// Keyeds returns the limiters of many subjects.
func Keyeds() []KeyedPeer {
	list := []KeyedPeer{
		{Info{Name: Loop}, func(Limit) (Keyed, error) { return noop{}, nil }},
		{Info{Name: FloorTable, Kind: Floor}, newTableFloor},
	}
	for _, a := range algorithms {
		if a.overKeyed {
			list = append(list, KeyedPeer{a.info(OursKeyed), newKeyed(a.limit)})
		}
	}
	list = append(list, KeyedPeer{Info{Name: OursKeyed + "wait", Kind: Ours, Compact: true}, newKeyedWait})
	for _, a := range algorithms {
		list = append(list, KeyedPeer{a.info(OursMemory), newMemory(a.limit)})
	}
	throttledInfo := rival("throttled_memstore", "github.com/throttled/throttled/v2")
	throttledInfo.Tolerated = 0.10
	throttledInfo.Flaw = "gives up with an error after ten lost compare-and-swaps on one key"
	return append(list,
		KeyedPeer{rival("mutex_map+x_rate", "golang.org/x/time"), newMutexMap},
		KeyedPeer{rival("rwmutex_map+x_rate", "golang.org/x/time"), newRWMutexMap},
		KeyedPeer{rival("sync.Map+x_rate", "golang.org/x/time"), newSyncMap},
		KeyedPeer{rival("sethvargo_memorystore", "github.com/sethvargo/go-limiter"), newMemoryStore},
		KeyedPeer{rival("ulule_memory", "github.com/ulule/limiter/v3"), newUlule},
		KeyedPeer{throttledInfo, newThrottled},
		KeyedPeer{rival("tollbooth_v7", "github.com/didip/tollbooth/v7"), newTollbooth},
		KeyedPeer{approximate(rival("httprate_counter", "github.com/go-chi/httprate")), newHTTPRate},
	)
}

// info describes one of Weir's algorithms.
func (a algorithm) info(prefix string) Info {
	i := Info{Name: prefix + a.name, Kind: Ours, Compact: a.compact}
	switch a.name {
	case "leakybucket", "rategate", "cycle", "concurrency":
		i.Brief = true
	}
	switch a.name {
	case "rategate", "bursty", "warmup":
		i.Tolerated, i.Flaw = 0.50, "refuses a call whose clock reading is before that of the preceding call"
	}
	return i
}

func rival(name, module string) Info { return Info{Name: name, Module: module, Kind: Exact} }

func approximate(i Info) Info {
	i.Kind = Approximate
	return i
}

func blocking(i Info) Info {
	i.AllowedOnly = true
	return i
}
