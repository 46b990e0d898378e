package measure

import (
	"fmt"
	"runtime"
	"time"

	"github.com/weirflow/weir/bench/internal/peers"
	"github.com/weirflow/weir/bench/internal/workload"
)

// singleMix has the limits of limiters of one subject.
var singleMix = &workload.Mix{Keys: 1, LogPeriod: time.Microsecond}

func (r *Results) singles() error {
	for _, cores := range r.Config.Cores {
		for _, denied := range []bool{false, true} {
			for _, peer := range r.Config.Singles {
				if denied && peer.AllowedOnly {
					continue
				}
				cell := Cell{Peer: peer.Name, Mix: SingleMix, Denied: denied, Cores: cores}
				if err := r.single(peer, cell, limitOf(singleMix, denied)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func limitOf(mix *workload.Mix, denied bool) peers.Limit {
	if denied {
		return mix.Denied()
	}
	return mix.Allowed()
}

func (r *Results) single(peer peers.SinglePeer, cell Cell, limit peers.Limit) error {
	made, err := newSingle(peer, limit)
	if err != nil {
		return err
	}
	defer peers.Close(made)
	sample, err := r.Config.decideSingle(made, peer.Info, cell)
	if err != nil {
		return err
	}
	r.Cells[cell] = append(r.Cells[cell], sample)
	return nil
}

// newSingle returns a limiter that has admitted one call.
func newSingle(peer peers.SinglePeer, limit peers.Limit) (peers.Single, error) {
	made, err := peer.New(limit)
	if err != nil {
		return nil, fmt.Errorf("measure: %s: %w", peer.Name, err)
	}
	if ok, err := made.Take(); err != nil || !ok {
		peers.Close(made)
		return nil, fmt.Errorf("measure: %s: the first call was refused: %v", peer.Name, err)
	}
	runtime.GC()
	return made, nil
}

// decideSingle measures decisions of a limiter after a short run-in.
func (c *Config) decideSingle(made peers.Single, info peers.Info, cell Cell) (Sample, error) {
	ask := func(_ int, stop func(int64) bool) counts { return askSingle(made, stop) }
	parallel(cell.Cores, after(c.Duration/4), ask)
	sample, all := parallel(cell.Cores, after(c.Duration), ask)
	if err := sample.judge(info, cell, all); err != nil {
		return Sample{}, fmt.Errorf("measure: %w", err)
	}
	return sample, nil
}

func askSingle(peer peers.Single, stop func(int64) bool) (c counts) {
	for c.ops == 0 || !stop(c.ops) {
		for range batch {
			ok, err := peer.Take()
			if ok {
				c.admitted++
			}
			if err != nil {
				c.errors++
			}
		}
		c.ops += batch
	}
	return c
}
