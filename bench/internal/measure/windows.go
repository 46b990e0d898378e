package measure

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/weirflow/weir/bench/internal/peers"
	"github.com/weirflow/weir/bench/internal/workload"
)

// Lots returns the cells of decisions in lots. One peer, filled once, serves all cells of a lot. The harness is left
// out.
func Lots(c Config) (all [][]Cell) {
	for _, denied := range []bool{false, true} {
		for _, peer := range c.Singles {
			if peer.Kind != peers.Harness && (!denied || !peer.AllowedOnly) {
				all = append(all, c.lot(peer.Name, denied, SingleMix))
			}
		}
	}
	for _, group := range groups(c.Mixes) {
		for _, denied := range []bool{false, true} {
			if denied && group[0].Fresh {
				continue
			}
			for _, peer := range c.Keyeds {
				if peer.Kind == peers.Harness || c.leavesOut(peer, group[0].Keys) {
					continue
				}
				var names []string
				for _, mix := range group {
					names = append(names, mix.Name)
				}
				all = append(all, c.lot(peer.Name, denied, names...))
			}
		}
	}
	return all
}

func (c *Config) lot(peer string, denied bool, mixes ...string) (cells []Cell) {
	for _, mix := range mixes {
		for _, cores := range c.Cores {
			cells = append(cells, Cell{Peer: peer, Mix: mix, Denied: denied, Cores: cores})
		}
	}
	return cells
}

// Windows measures the cells of one lot in short windows, in the order in which the caller asks for them. Two processes
// with a Windows each can therefore take turns. It is not safe for concurrent use.
type Windows struct {
	config Config
	single peers.Single // the peer of the lot, if it has one subject
	keyed  peers.Keyed  // the peer of the lot, if it knows its keys
	turns  map[Cell]int
	run    freshRun
}

// freshRun is a peer on its way through the fresh keys.
type freshRun struct {
	made peers.Keyed
	cell Cell
	at   int // keys that it has seen
}

// freshSlice is the number of fresh keys in one window.
const freshSlice = 1 << 15

// NewWindows returns windows of the configuration's cells. All later cells must be of the same lot.
func NewWindows(c Config) *Windows { return &Windows{config: c, turns: map[Cell]int{}} }

// Slices returns the number of windows that a cell's peer takes for all keys of its mix. Known keys have no end, so it
// returns 1 for them.
func (c *Config) Slices(cell Cell) int {
	if mix := c.mix(cell.Mix); mix != nil && mix.Fresh {
		return max(1, mix.Keys/freshSlice)
	}
	return 1
}

// Measure measures the next window of a cell and returns the time of a decision in ns. On one core that is the time of
// the processor, which other processes do not add to. On several cores it is the time that passed, because callers may
// wait for each other.
func (w *Windows) Measure(cell Cell) (float64, error) {
	sample, err := w.sample(cell)
	if cell.Cores == 1 {
		return sample.ProcessorNsPerOp, err
	}
	return sample.NsPerOp, err
}

func (w *Windows) sample(cell Cell) (Sample, error) {
	turn := w.turns[cell]
	w.turns[cell]++
	if cell.Mix == SingleMix {
		return w.measureSingle(cell)
	}
	mix, peer := w.config.mix(cell.Mix), w.config.keyed(cell.Peer)
	if mix == nil || peer == nil {
		return Sample{}, fmt.Errorf("measure: window: unknown cell %+v", cell)
	}
	if mix.Fresh {
		return w.measureFresh(*peer, mix, cell)
	}
	if w.keyed == nil {
		made, err := newKeyed(*peer, mix, cell.Denied)
		if err != nil {
			return Sample{}, fmt.Errorf("measure: %s: %w", cell.Peer, err)
		}
		w.keyed = made
	}
	return w.config.decideKnown(w.keyed, peer.Info, mix, cell, turn)
}

func (w *Windows) measureSingle(cell Cell) (Sample, error) {
	at := slices.IndexFunc(w.config.Singles, func(p peers.SinglePeer) bool { return p.Name == cell.Peer })
	if at < 0 {
		return Sample{}, fmt.Errorf("measure: window: unknown cell %+v", cell)
	}
	if w.single == nil {
		made, err := newSingle(w.config.Singles[at], limitOf(singleMix, cell.Denied))
		if err != nil {
			return Sample{}, err
		}
		w.single = made
	}
	return w.config.decideSingle(w.single, w.config.Singles[at].Info, cell)
}

// measureFresh decides on the next slice of the fresh keys. After the last slice a new peer begins.
func (w *Windows) measureFresh(peer peers.KeyedPeer, mix *workload.Mix, cell Cell) (Sample, error) {
	sequence := mix.Sequences()[0]
	size := sequence.Len() / w.config.Slices(cell)
	if w.run.made == nil || w.run.cell != cell || w.run.at+size > sequence.Len() {
		if err := w.restart(peer, mix, cell); err != nil {
			return Sample{}, err
		}
	}
	share := size / cell.Cores
	sample, all := parallel(cell.Cores, calls(share), func(worker int, stop func(int64) bool) counts {
		return askKeyed(w.run.made, sequence, w.run.at+worker*share, stop)
	})
	w.run.at += size
	return sample, sample.judge(peer.Info, cell, all)
}

func (w *Windows) restart(peer peers.KeyedPeer, mix *workload.Mix, cell Cell) error {
	if w.run.made != nil {
		peers.Close(w.run.made)
	}
	w.run = freshRun{}
	made, err := peer.New(mix.Allowed())
	if err != nil {
		return fmt.Errorf("measure: %s: %w", peer.Name, err)
	}
	w.run = freshRun{made: made, cell: cell}
	runtime.GC()
	return nil
}

func (c *Config) mix(name string) *workload.Mix {
	at := slices.IndexFunc(c.Mixes, func(m *workload.Mix) bool { return m.Name == name })
	if at < 0 {
		return nil
	}
	return c.Mixes[at]
}

func (c *Config) keyed(name string) *peers.KeyedPeer {
	at := slices.IndexFunc(c.Keyeds, func(p peers.KeyedPeer) bool { return p.Name == name })
	if at < 0 {
		return nil
	}
	return &c.Keyeds[at]
}
