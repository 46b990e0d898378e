package enginekit_test

import (
	"context"
	"maps"
	"math"
	"strconv"
	"sync"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/limittest"
)

// client is what the store needs of a database like etcd.
type client interface {
	// Get returns the values of names. A missing one is "".
	Get(ctx context.Context, names ...string) (map[string]string, error)
	// Txn puts values if all of others are as expected. The values may expire after ends, in nanoseconds since the Unix epoch.
	Txn(ctx context.Context, expected, put map[string]string, ends int64) (ok bool, err error)
}

// etcd is a store over transactions that compare values. A row is two values: its version and its state.
type etcd struct{ client client }

func (s etcd) Load(ctx context.Context, keys []string) ([]enginekit.Row, int64, error) {
	var names []string
	for _, key := range keys {
		names = append(names, "version/"+key, "state/"+key)
	}
	values, err := s.client.Get(ctx, names...)
	if err != nil {
		return nil, 0, err
	}
	rows := make([]enginekit.Row, len(keys))
	for i, key := range keys {
		rows[i].Version, _ = strconv.ParseInt(values["version/"+key], 10, 64)
		rows[i].State = []byte(values["state/"+key])
	}
	return rows, 0, nil // it has no clock: see StoreOptions.Clock
}

func (s etcd) Swap(ctx context.Context, _ int64, changes []enginekit.Change) (now int64, err error) {
	for i := range changes {
		expected, put, ends := map[string]string{}, map[string]string{}, int64(0)
		for _, w := range changes[i].Writes {
			if expected["version/"+w.Key] = ""; w.Old != 0 {
				expected["version/"+w.Key] = strconv.FormatInt(w.Old, 10)
			}
			if w.New != 0 {
				put["version/"+w.Key], put["state/"+w.Key] = strconv.FormatInt(w.New, 10), string(w.State)
				ends = max(ends, w.Ends)
			}
		}
		if changes[i].Done, err = s.client.Txn(ctx, expected, put, ends); err != nil {
			return 0, err // the engine reads what was made
		}
	}
	return 0, nil
}

// newEtcdEngine returns an engine over the client that decides by the clock of the process.
func newEtcdEngine(c client, clock func() int64) weir.Engine {
	return enginekit.NewStore(etcd{c}, enginekit.StoreOptions{Name: "etcd", Clock: clock, MaxEntries: math.MaxInt64})
}

// values is a client in memory.
type values struct {
	mu  sync.Mutex
	all map[string]string
}

func (v *values) Get(_ context.Context, names ...string) (map[string]string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.all), nil
}

func (v *values) Txn(_ context.Context, expected, put map[string]string, _ int64) (ok bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for name, value := range expected {
		if v.all[name] != value {
			return false, nil
		}
	}
	maps.Copy(v.all, put)
	return true, nil
}

func TestTheStoreOfTheDocsPassesTheSuiteAndItsVectors(t *testing.T) {
	limittest.Run(t, func(clock func() int64) weir.Engine { return newEtcdEngine(&values{all: map[string]string{}}, clock) })
}
