package sqllimit

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
)

// oneTable is a driver of a database that has one table at most, of which it keeps the version and the changes. Package
// drivertest has real databases. They have no table of an earlier version, because there is none so far.
type oneTable struct {
	transaction sync.Mutex
	mu          sync.Mutex
	version     int64 // 0 without a table
	changes     []string
	refuses     string // a change
}

func (d *oneTable) Connect(context.Context) (driver.Conn, error) { return &oneConn{db: d}, nil }
func (d *oneTable) Driver() driver.Driver                        { return nil }

// oneConn is a connection. Its transaction undoes the version and the changes.
type oneConn struct {
	driver.Conn
	db   *oneTable
	undo func()
}

func (c *oneConn) Close() error { return nil }

func (c *oneConn) ExecContext(_ context.Context, text string, _ []driver.NamedValue) (driver.Result, error) {
	if text == "BEGIN" {
		c.db.transaction.Lock()
	}
	c.db.mu.Lock()
	defer c.db.mu.Unlock()
	switch version, changes := c.db.version, len(c.db.changes); {
	case text == "BEGIN":
		c.undo = func() { c.db.version, c.db.changes = version, c.db.changes[:changes] }
	case text == "COMMIT":
		c.db.transaction.Unlock()
	case text == "ROLLBACK":
		c.undo()
		c.db.transaction.Unlock()
	case text == c.db.refuses:
		return nil, errors.New("refused: " + text)
	case strings.HasPrefix(text, "INSERT"):
		c.db.version = max(version, 1)
	case strings.HasPrefix(text, "UPDATE"):
		_, err := fmt.Sscanf(text, `UPDATE "weir" SET version = %d`, &c.db.version)
		return driver.ResultNoRows, err
	default:
		c.db.changes = append(c.db.changes, text)
	}
	return driver.ResultNoRows, nil
}

func (c *oneConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	c.db.mu.Lock()
	defer c.db.mu.Unlock()
	if c.db.version == 0 {
		return nil, errors.New("no such table")
	}
	return &oneRow{version: c.db.version}, nil
}

type oneRow struct {
	version int64
	read    bool
}

func (*oneRow) Columns() []string { return []string{"name", "version", "state", "clock"} }
func (*oneRow) Close() error      { return nil }

func (r *oneRow) Next(values []driver.Value) error {
	if r.read {
		return io.EOF
	}
	r.read = true
	values[0], values[1], values[2], values[3] = []byte{}, r.version, []byte{}, int64(1)
	return nil
}

// later is the table as a later version of the package may have it.
func later(t *testing.T, d *oneTable) *table {
	t.Helper()
	db := sql.OpenDB(d)
	t.Cleanup(func() { _ = db.Close() })
	result, err := newTable(db, PostgreSQL, Options{})
	if err != nil {
		t.Fatal(err)
	}
	result.versions = append(result.versions, []string{"second", "also second"}, []string{"third"})
	return result
}

func TestATableOfAnEarlierVersionIsMigratedOnce(t *testing.T) {
	for from := range int64(4) {
		d := &oneTable{version: from}
		if err := later(t, d).open(t.Context(), false); (err == nil) != (from == 3) || from > 0 && from < 3 && !strings.Contains(err.Error(), fmt.Sprintf("version %d, not 3; Options.Create", from)) {
			t.Errorf("version %d, without leave to migrate: got %v", from, err)
		}
		opened := make(chan error)
		for range 3 {
			process := later(t, d)
			go func() { opened <- process.open(context.Background(), true) }()
		}
		for range 3 {
			if err := <-opened; err != nil {
				t.Errorf("three processes, version %d: %v", from, err)
			}
		}
		got := slices.DeleteFunc(d.changes, func(text string) bool { return strings.HasPrefix(text, "CREATE") })
		want := []string{"second", "also second", "third"}[min(max(from-1, 0)*2, 3):]
		if d.version != 3 || !slices.Equal(got, want) {
			t.Errorf("from version %d: version %d after %q, want 3 after %q", from, d.version, got, want)
		}
	}
}

func TestAMigrationThatFailsChangesNothing(t *testing.T) {
	d := &oneTable{version: 1, refuses: "third"}
	if err := later(t, d).open(t.Context(), true); err == nil || !strings.Contains(err.Error(), "refused: third") {
		t.Errorf("got %v", err)
	}
	if want := []string{"second", "also second"}; d.version != 2 || !slices.Equal(d.changes, want) {
		t.Errorf("version %d after %q, want 2 after %q", d.version, d.changes, want)
	}
	d = &oneTable{version: 4}
	if err := later(t, d).open(t.Context(), true); err == nil || !strings.Contains(err.Error(), "version 4, not 3; a later version") || len(d.changes) > 0 {
		t.Errorf("a table of a later version: got %v after %q", err, d.changes)
	}
}
