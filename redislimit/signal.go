package redislimit

import (
	"context"
	"encoding/binary"
	"math"
	"strings"
	"time"

	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/servers"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// channel is one subscription of a process. In a cluster a process has one for each lane that it uses, otherwise one. The
// engine relies on it once it has heard a message that it published itself: an ACL or a proxy may deny either side. The
// lock of lines guards it.
type channel struct {
	servers.Channel
	lines  *lines
	heard  bool
	cancel context.CancelFunc
	idle   *time.Timer
}

const (
	idleChannel   = time.Minute // a channel that no caller needs for so long is closed
	againChannel  = time.Second // between two subscriptions, if the first one is lost
	deniedChannel = time.Minute // and if it was denied
	signalLength  = 24          // a token, the units that are free, and the least age of their callers
	probeSignal   = "probe"     // what the engine publishes itself
	trySignalFor  = time.Second // how long Warnings waits for the answers
)

// Hears reports whether signals reach the process.
func (l *lines) Hears() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.channels {
		if !c.heard {
			return false
		}
	}
	return len(l.channels) > 0
}

// hears returns how the process hears signals of a lane now, and subscribes if it may need them.
func (l *lines) hears(lane int) wire.Hearing {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.engine
	if e.client.Known() == nil || l.closed {
		return wire.Deaf
	}
	of := e.channelOf(lane, e.client.Cluster() && !l.plain, l.name)
	c := l.channels[of.Name]
	if c == nil {
		c = l.open(of)
	}
	c.idle.Reset(idleChannel)
	switch {
	case !c.heard:
		return wire.Deaf
	case c.Shard:
		return wire.ByShard
	}
	return wire.ByPublish
}

// channelOf returns the channel of a process for a lane.
func (e *Engine) channelOf(lane int, shard bool, process string) servers.Channel {
	head := e.options.Prefix + ":"
	if shard {
		head = e.keys.Heads[lane]
	}
	return e.client.Channel(head+"wake:"+process, shard)
}

// open begins a subscription. The caller holds the lock.
func (l *lines) open(of servers.Channel) *channel {
	ctx, cancel := context.WithCancel(context.Background())
	c := &channel{Channel: of, lines: l, cancel: cancel}
	c.idle = time.AfterFunc(idleChannel, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		c.end()
	})
	l.channels[c.Name] = c
	go c.listen(ctx)
	return c
}

// end ends the subscription. The caller holds the lock.
func (c *channel) end() {
	if c.lines.channels[c.Name] == c {
		delete(c.lines.channels, c.Name)
	}
	c.heard = false
	c.idle.Stop()
	c.cancel()
}

func (l *lines) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, c := range l.channels {
		c.end()
	}
}

// listen subscribes, again and again, until the channel has ended.
func (c *channel) listen(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		err := c.receive(ctx)
		pause := againChannel - time.Since(began)
		if text, refused := fault.Refusal(err); refused {
			if c.Shard && strings.Contains(text, "unknown command") {
				c.withoutShards()
				return
			}
			if reason := fault.ServerReason(text); reason == fault.Denied || reason == fault.Refused {
				pause = deniedChannel
			}
		}
		c.lose()
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// receive hears signals until the subscription ends.
func (c *channel) receive(ctx context.Context) error {
	return c.Subscribe(ctx, func() {
		c.lose() // the client subscribes again by itself after a cut
		// If this message is heard, the channel works.
		go func() { _ = c.Publish(ctx, probeSignal) }()
	}, c.received)
}

// lose notes that the channel hears nothing for now.
func (c *channel) lose() {
	c.lines.mu.Lock()
	defer c.lines.mu.Unlock()
	c.heard = false
}

// withoutShards uses plain channels from now on.
func (c *channel) withoutShards() {
	c.lines.mu.Lock()
	defer c.lines.mu.Unlock()
	c.lines.plain = true
	c.end()
}

// received passes a signal on to the process.
func (c *channel) received(message string) {
	if message == probeSignal {
		c.lines.mu.Lock()
		c.heard = c.lines.channels[c.Name] == c
		c.lines.mu.Unlock()
		return
	}
	if len(message) == signalLength {
		c.lines.hear(enginekit.LineSignal{
			Token:  binary.LittleEndian.Uint64([]byte(message)),
			Units:  wire.UnitsOf(doubleAt(message, 8)),
			MinAge: wire.WaitOf(doubleAt(message, 16)),
		})
	}
}

func doubleAt(message string, i int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64([]byte(message[i:])))
}
