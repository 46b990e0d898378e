package serve

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
)

// inherited are the sockets that the service manager holds for this process, by the names of flags. The manager keeps
// them open when the daemon stops, so connections wait for the next one.
var inherited = sync.OnceValue(func() *sockets {
	found, _ := activation.ListenersWithNames() // it returns no error
	s := &sockets{byFlag: map[string]net.Listener{}}
	for name, listeners := range found {
		if !isPort[name] { // the name of a socket unit without FileDescriptorName
			name = "http"
		}
		s.byFlag[name] = listeners[0]
	}
	return s
})

var isPort = map[string]bool{"http": true, "admin": true, "metrics": true, "resp": true, "grpc": true}

type sockets struct {
	mu     sync.Mutex
	byFlag map[string]net.Listener
}

// take returns the socket of a flag, once, or nil.
func (s *sockets) take(flag string) net.Listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.byFlag[flag]
	delete(s.byFlag, flag)
	return found
}

// warn logs sockets that nobody serves.
func (s *sockets) warn(log *slog.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for flag, on := range s.byFlag {
		log.Warn("an inherited socket is not served; its name is that of a flag, which must be set", "name", flag, "address", on.Addr().String())
	}
}

// notify tells the service manager about the daemon. Without one it does nothing.
func notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("the service manager cannot be notified", "state", state, "err", err)
	}
}

// notifyReload tells the service manager that the files were read, with the outcome.
func notifyReload(log *slog.Logger, status string) {
	notify(log, daemon.SdNotifyReloading+"\n"+daemon.SdNotifyMonotonicUsec())
	notify(log, daemon.SdNotifyReady+"\nSTATUS="+status)
}

// feedWatchdog tells the service manager that the daemon is alive, if that wants to know, until the context ends.
func feedWatchdog(ctx context.Context, log *slog.Logger) {
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil || every <= 0 {
		return
	}
	tick := time.NewTicker(every / 3)
	defer tick.Stop()
	for ctx.Err() == nil {
		notify(log, daemon.SdNotifyWatchdog)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}
