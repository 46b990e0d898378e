package enginekit_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/waittest"
)

// netStore is a store that a process reaches over a network.
type netStore struct {
	enginekit.Store
	waittest.Network
}

func (s netStore) Load(ctx context.Context, keys []string) (rows []enginekit.Row, now int64, err error) {
	err = s.call(ctx, func() error {
		rows, now, err = s.Store.Load(ctx, keys)
		return err
	})
	return rows, now, err
}

func (s netStore) Swap(ctx context.Context, at int64, changes []enginekit.Change) (now int64, err error) {
	err = s.call(ctx, func() error {
		now, err = s.Store.Swap(ctx, at, changes)
		return err
	})
	return now, err
}

func (s netStore) call(ctx context.Context, do func() error) error {
	_, err := s.Call(ctx, weir.Call{}, func(context.Context, weir.Call) (weir.Answer, error) { return weir.Answer{}, do() })
	return err
}

// netLocker also locks.
type netLocker struct{ netStore }

func (s netLocker) Lock(ctx context.Context, keys []string, decide func([]enginekit.Row, int64) []enginekit.Write) error {
	return s.call(ctx, func() error { return s.Store.(enginekit.Locker).Lock(ctx, keys, decide) })
}

// The promises of waiting, in processes on a store whose swaps conflict, of which some lock.
func TestWaitingOnAStoreKeepsItsPromisesInRandomSchedules(t *testing.T) {
	for seed := range randtest.Seeds(t, 10, 3) {
		synctest.Test(t, func(t *testing.T) {
			store := lockingStore{newMemoryStore(func() int64 { return time.Now().UnixNano() })}
			store.breaks(5, 0, 0)
			waittest.Schedule(t, seed, waittest.World{
				Connect: func(n waittest.Network) weir.Engine {
					if seed%2 == 0 {
						return enginekit.NewStore(netLocker{netStore{store, n}}, enginekit.StoreOptions{})
					}
					return enginekit.NewStore(netStore{store, n}, enginekit.StoreOptions{})
				},
				Sees:      enginekit.NewStore(store, enginekit.StoreOptions{}),
				Processes: 5,
			})
			time.Sleep(90 * time.Second)
		})
	}
}

// Calls that can never be admitted cost other callers nothing, on a store whose swaps conflict, and on one that locks.
func TestHopelessCallsOnAStoreCostOtherCallersNothing(t *testing.T) {
	for i, limit := range waittest.Limits {
		for seed := range randtest.Seeds(t, 2, 1) {
			synctest.Test(t, func(t *testing.T) {
				store := lockingStore{newMemoryStore(func() int64 { return time.Now().UnixNano() })}
				waittest.Hopeless(t, seed+uint64(i)<<32, waittest.World{Connect: func(n waittest.Network) weir.Engine {
					if seed%2 == 0 {
						return enginekit.NewStore(netLocker{netStore{store, n}}, enginekit.StoreOptions{})
					}
					return enginekit.NewStore(netStore{store, n}, enginekit.StoreOptions{})
				}}, limit, 8*time.Second, 0.02, 6)
				time.Sleep(90 * time.Second)
			})
		}
	}
}
