package layer

import "github.com/weirflow/weir"

// NetworkOptions choose what ForNetwork puts around an engine.
type NetworkOptions struct {
	Guard    GuardOptions
	Prefetch bool // with a Prefetch
}

// ForNetwork puts the usual layers around an engine on a network: a Guard, a Prefetch if that is chosen, and a DenyUntil. Calling
// end before the engine is closed ends their work. A program that never closes the engine need not call it: the layers have
// goroutines only while they owe the engine something.
//
// A weir.Memory needs no layers, and an engine that has a Guard has them, so they stay as they are. With options for the
// Guard that is there already, ForNetwork returns an error, because they would have no effect.
func ForNetwork(e weir.Engine, options NetworkOptions) (layered weir.Engine, end func(), err error) {
	if err := options.Guard.check(); err != nil {
		return nil, nil, err
	}
	if _, memory := weir.Find[*weir.Memory](e); memory {
		return e, func() {}, nil
	}
	if _, guarded := weir.Find[*Guarded](e); guarded {
		if options.Prefetch || options.Guard.says() {
			return nil, nil, optionError(guards, "options", "have no effect on an engine that has a guard already: give them to that guard")
		}
		return e, func() {}, nil
	}
	guard, err := Guard(e, options.Guard)
	if err != nil {
		return nil, nil, err
	}
	layered, end = guard, guard.Close
	if options.Prefetch {
		prefetched, err := Prefetch(guard, PrefetchOptions{})
		if err != nil {
			return nil, nil, err
		}
		layered, end = prefetched, func() { prefetched.Close(); guard.Close() }
	}
	layered, err = DenyUntil(layered, DenyOptions{})
	return layered, end, err
}

// says reports whether the options set anything except the Logger.
func (o *GuardOptions) says() bool {
	return o.OnFailure != Deny || len(o.Rules) > 0 || o.Peers != 0 || o.PeersNow != nil || o.Deadline != 0 || o.MaxKeys != 0 || o.OnChange != nil
}
