package measure

import (
	"fmt"
	"runtime"
	"time"

	"github.com/weirflow/weir/bench/internal/peers"
	"github.com/weirflow/weir/bench/internal/workload"
)

func (r *Results) singles() error {
	mix := &workload.Mix{Keys: 1, LogPeriod: time.Microsecond}
	for _, cores := range r.Config.Cores {
		for _, denied := range []bool{false, true} {
			for _, peer := range r.Config.Singles {
				if denied && peer.AllowedOnly {
					continue
				}
				cell := Cell{Peer: peer.Name, Mix: SingleMix, Denied: denied, Cores: cores}
				if err := r.single(peer, cell, limitOf(mix, denied)); err != nil {
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
	made, err := peer.New(limit)
	if err != nil {
		return fmt.Errorf("measure: %s: %w", peer.Name, err)
	}
	defer peers.Close(made)
	if ok, err := made.Take(); err != nil || !ok {
		return fmt.Errorf("measure: %s: the first call was refused: %v", peer.Name, err)
	}
	runtime.GC()
	ask := func(_ int, stop func(int64) bool) counts { return askSingle(made, stop) }
	parallel(cell.Cores, after(r.Config.Duration/10), ask)
	sample, all := parallel(cell.Cores, after(r.Config.Duration), ask)
	if err := sample.judge(peer.Info, cell, all); err != nil {
		return fmt.Errorf("measure: %w", err)
	}
	r.Cells[cell] = append(r.Cells[cell], sample)
	return nil
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
