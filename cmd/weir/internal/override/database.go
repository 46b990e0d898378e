package override

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// database keeps entries in two rows of the table of the limits: all of them as JSON, and a small one that changes with
// them, which every daemon reads twice a second.
type database struct {
	rows    enginekit.Store
	version int64 // of the last load
}

// The keys of the rows. No limit has them, because its rule has a name.
const (
	versionRow = "\x00override"
	entriesRow = "\x00overrides"
)

// OpenDatabase returns the table in the rows of an engine.
func OpenDatabase(ctx context.Context, rows enginekit.Store, log *slog.Logger) (*Table, error) {
	return open(ctx, &database{rows: rows, version: math.MinInt64}, log)
}

func (d *database) load(ctx context.Context) (entries []Entry, changed bool, err error) {
	rows, _, err := d.rows.Load(ctx, []string{versionRow})
	if err != nil {
		return nil, false, &StoreError{err}
	}
	if rows[0].Version == d.version {
		return nil, false, nil
	}
	rows, entries, err = d.read(ctx)
	if err == nil {
		d.version = rows[0].Version
	}
	return entries, err == nil, err
}

func (d *database) read(ctx context.Context) (rows []enginekit.Row, entries []Entry, err error) {
	rows, _, err = d.rows.Load(ctx, []string{versionRow, entriesRow})
	if err == nil && len(rows[1].State) > 0 {
		err = json.Unmarshal(rows[1].State, &entries)
	}
	if err != nil {
		return nil, nil, &StoreError{err}
	}
	return rows, entries, nil
}

// mostTries bounds how often a change is tried while other daemons make theirs.
const mostTries = 20

func (d *database) put(ctx context.Context, at target, e *Entry) error {
	for range mostTries {
		rows, entries, err := d.read(ctx)
		if err != nil {
			return err
		}
		entries = slices.DeleteFunc(entries, func(x Entry) bool {
			return x.target() == at || time.Since(x.Until) > time.Minute // clocks differ
		})
		if e != nil {
			entries = append(entries, *e)
		}
		if len(entries) > MaxEntries {
			return errFull
		}
		content, err := json.Marshal(entries)
		if err != nil {
			return err
		}
		change := []enginekit.Change{{Writes: []enginekit.Write{
			{Key: versionRow, Old: rows[0].Version, New: int64(weir.Kit.NewLease()), Ends: math.MaxInt64},
			{Key: entriesRow, Old: rows[1].Version, New: int64(weir.Kit.NewLease()), State: content, Ends: math.MaxInt64},
		}}}
		_, err = d.rows.Swap(ctx, math.MinInt64, change)
		switch {
		case err != nil && !errors.Is(err, enginekit.ErrConflict):
			return &StoreError{err}
		case err == nil && change[0].Done:
			return nil // the next poll reads the version
		}
	}
	return &StoreError{fmt.Errorf("other daemons were quicker %d times", mostTries)}
}
