package measure

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"slices"

	"github.com/weirflow/weir/bench/internal/peers"
	"github.com/weirflow/weir/bench/internal/workload"
)

func (r *Results) keyeds(repetition int) error {
	for _, group := range groups(r.Config.Mixes) {
		for _, denied := range []bool{false, true} {
			if denied && group[0].Fresh {
				continue // every limit admits a fresh key
			}
			for _, peer := range r.Config.Keyeds {
				if r.Config.leavesOut(peer, group[0].Keys) {
					continue
				}
				if err := r.keyed(peer, group, denied, repetition); err != nil {
					return fmt.Errorf("measure: %s: %w", peer.Name, err)
				}
			}
		}
	}
	return nil
}

// groups returns the mixes in groups; one filled peer serves the mixes of a group in turn.
func groups(mixes []*workload.Mix) (all [][]*workload.Mix) {
	for _, mix := range mixes {
		last := len(all) - 1
		if last >= 0 && !mix.Fresh && all[last][0].Keys == mix.Keys && all[last][0].LogPeriod == mix.LogPeriod {
			all[last] = append(all[last], mix)
			continue
		}
		all = append(all, []*workload.Mix{mix})
	}
	return all
}

func (r *Results) keyed(peer peers.KeyedPeer, group []*workload.Mix, denied bool, repetition int) error {
	if group[0].Fresh {
		for _, cores := range r.Config.Cores {
			if err := r.fresh(peer, group[0], cores); err != nil {
				return err
			}
		}
		return nil
	}
	made, err := newKeyed(peer, group[0], denied)
	if err != nil {
		return err
	}
	defer peers.Close(made)
	for _, mix := range group {
		for _, cores := range r.Config.Cores {
			cell := Cell{Peer: peer.Name, Mix: mix.Name, Denied: denied, Cores: cores}
			sample, err := r.Config.decideKnown(made, peer.Info, mix, cell, repetition)
			if err != nil {
				return err
			}
			r.Cells[cell] = append(r.Cells[cell], sample)
		}
	}
	return nil
}

// newKeyed returns a peer that knows the keys of a mix.
func newKeyed(peer peers.KeyedPeer, mix *workload.Mix, denied bool) (peers.Keyed, error) {
	made, err := peer.New(limitOf(mix, denied))
	if err != nil {
		return nil, err
	}
	if err := errors.Join(fill(made, 0, mix.Keys), remembers(made, mix.Keys)); err != nil {
		peers.Close(made)
		return nil, err
	}
	runtime.GC()
	return made, nil
}

// fill takes one unit of each key. Each key is a string of its own, so the peer alone keeps it alive.
func fill(peer peers.Keyed, first, keys int) error {
	for i := range keys {
		if ok, err := peer.Take(workload.Key(first + i)); err != nil || !ok {
			return fmt.Errorf("the first call of key %d was refused: %v", first+i, err)
		}
	}
	return nil
}

// remembers checks the number of keys of a peer that reports it.
func remembers(peer peers.Keyed, want int) error {
	if counter, ok := peer.(peers.Counter); ok && counter.Len() != want {
		return fmt.Errorf("remembers %d keys, want %d", counter.Len(), want)
	}
	return nil
}

// decideKnown measures decisions on keys that the peer knows, after a short run-in. Each turn starts at another place of
// the sequences.
func (c *Config) decideKnown(made peers.Keyed, info peers.Info, mix *workload.Mix, cell Cell, turn int) (Sample, error) {
	sequences := mix.Sequences()
	position := turn * 7919 * batch
	ask := func(end until) (Sample, counts, []int) {
		done := make([]int, cell.Cores)
		sample, all := parallel(cell.Cores, end, func(worker int, stop func(int64) bool) counts {
			c := askKeyed(made, sequences[worker], position, stop)
			done[worker] = int(c.ops)
			return c
		})
		return sample, all, done
	}
	_, _, done := ask(after(c.Duration / 4))
	position += slices.Max(done) // the run-in has brought the keys before it into the caches
	sample, all, done := ask(after(c.Duration))
	if err := sample.judge(info, cell, all); err != nil {
		return Sample{}, err
	}
	if err := sample.count(mix, sequences, position, done); err != nil {
		return Sample{}, err
	}
	return sample, nil
}

// fresh makes decisions of a new peer on keys that never repeat.
func (r *Results) fresh(peer peers.KeyedPeer, mix *workload.Mix, cores int) error {
	made, err := peer.New(mix.Allowed())
	if err != nil {
		return err
	}
	defer peers.Close(made)
	sequence := mix.Sequences()[0]
	share := sequence.Len() / cores
	runtime.GC()
	cell := Cell{Peer: peer.Name, Mix: mix.Name, Cores: cores}
	sample, all := parallel(cores, calls(share), func(worker int, stop func(int64) bool) counts {
		return askKeyed(made, sequence, worker*share, stop)
	})
	if err := sample.judge(peer.Info, cell, all); err != nil {
		return err
	}
	if err := remembers(made, int(all.ops)); err != nil {
		return err
	}
	sample.Distinct = int(all.ops)
	r.Cells[cell] = append(r.Cells[cell], sample)
	return nil
}

// askKeyed makes decisions on the keys of a sequence from a position on.
func askKeyed(peer peers.Keyed, s *workload.Sequence, position int, stop func(int64) bool) (c counts) {
	position %= s.Len()
	for c.ops == 0 || !stop(c.ops) {
		for range batch {
			ok, err := peer.Take(s.Key(position))
			if ok {
				c.admitted++
			}
			if err != nil {
				c.errors++
			}
			if position++; position == s.Len() {
				position = 0
			}
		}
		c.ops += batch
	}
	return c
}

// count checks that the workers used as many distinct keys as the mix promises.
func (s *Sample) count(mix *workload.Mix, sequences []*workload.Sequence, position int, done []int) error {
	seen := make([]uint64, mix.Keys/64+1)
	draws := 0
	for worker, ops := range done {
		sequence := sequences[worker]
		sequence.Mark(seen, position%sequence.Len(), ops)
		draws += min(ops, sequence.Len())
	}
	for _, word := range seen {
		s.Distinct += bits.OnesCount64(word)
	}
	want := mix.Distinct(draws)
	if math.Abs(float64(s.Distinct)-want) > 0.02*want+5*math.Sqrt(want) {
		return fmt.Errorf("%s: %d draws asked about %d keys, want %.0f ± 2 %% and what is chance", mix.Name, draws, s.Distinct, want)
	}
	return nil
}
