package main

import (
	"context"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/peers"
)

const (
	bytesAKey    = "heap bytes a key"
	collectionMs = "full collection ms"
	memoryOfMany = "memory of 1M keys"
)

// held is a limit under which a key stays alive for an hour after one call.
var held = peers.Limit{Burst: 1000, Refill: time.Hour, Window: 30 * 24 * time.Hour, LogCount: 1000, LogPeriod: time.Hour}

// memoryRow measures the memory of a peer for a million keys. bench/large has ten million.
func memoryRow(peer peers.Peer, quick bool) measure.Row {
	keys := 1_000_000
	if quick {
		keys /= 20
	}
	one := row(peer, memoryOfMany, "", func(context.Context, *measure.Options) (measure.Figures, error) { return footprint(peer, keys) })
	one.Once = true
	return one
}

// footprint compares the heap before and after. It counts the text of a key if the peer keeps it.
func footprint(peer peers.Peer, keys int) (measure.Figures, error) {
	current.Stop()
	current.owner, current.Limiter = nil, peers.Limiter{}
	heap, resident := measure.Memory()
	made, err := peer.New(held)
	if err != nil {
		return nil, err
	}
	defer made.Stop()
	if err := fill(made, 0, keys); err != nil {
		return nil, err
	}
	heapAfter, residentAfter := measure.Memory()
	f := measure.Figures{
		bytesAKey: (heapAfter - heap) / float64(keys), "resident bytes": (residentAfter - resident) / float64(keys), collectionMs: measure.Collections(11).Median(),
	}
	return f, remembers(made, keys)
}
