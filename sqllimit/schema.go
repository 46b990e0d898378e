package sqllimit

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/weirflow/weir"
)

// The row without a name has the version of the table, so that every process can tell. This package reads and writes the
// last of table.versions.

// Schema returns the statements that create the table of an engine with these options, to be run by someone who may.
func Schema(d Dialect, o Options) (string, error) {
	t, err := newTable(nil, d, o)
	if err != nil {
		return "", err
	}
	return strings.Join(slices.Concat(t.versions...), ";\n") + ";\n", nil
}

// versionsOf returns the statements that lead to each version of the table from the one before. The first ones create it.
// MySQL commits each statement, so it can be run again after a failure.
func (t *table) versionsOf(unlogged bool) [][]string {
	d, create := t.dialect, "CREATE TABLE IF NOT EXISTS "
	if unlogged {
		create = "CREATE UNLOGGED TABLE IF NOT EXISTS "
	}
	return [][]string{
		{create + t.name + " (" + d.columns + ")" + d.options, t.firstRow(1)},
	}
}

// open checks the version of the table. It creates and migrates the table if it may. Its errors are OpenErrors.
func (t *table) open(ctx context.Context, create bool) error {
	last := int64(len(t.versions))
	version, err := t.version(ctx)
	for try := int64(0); create && (err != nil || version < last) && try < last+2; try++ { // another process may do the same
		failed := t.migrate(ctx, version)
		if version, err = t.version(ctx); failed != nil && (err != nil || version < last) {
			err = failed
		}
	}
	switch {
	case err != nil:
		return &OpenError{t.unreachable(err), t.fails(err, false)}
	case version < last:
		return &OpenError{Err: fmt.Errorf("table %s has version %d, not %d; Options.Create migrates it", t.name, version, last)}
	case version > last:
		return &OpenError{Err: fmt.Errorf("table %s has version %d, not %d; a later version of this package has migrated it", t.name, version, last)}
	}
	return nil
}

// version returns the version of the table. A table without rows is like one that this process has had open.
func (t *table) version(ctx context.Context) (version int64, err error) {
	rows, _, err := t.Load(ctx, []string{""})
	if err != nil {
		return 0, err
	}
	return rows[0].Version, nil
}

// migrate leads the table from a version to the next one, unless another process has done so. Version 0 is no table.
func (t *table) migrate(ctx context.Context, from int64) error {
	c, err := t.begin(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	statements := t.versions[from]
	if from > 0 {
		rows, _, _, err := t.read(ctx, c, []string{""}, t.dialect.lock)
		if err != nil || rows[0].Version != from {
			t.rollback(c)
			return err
		}
		statements = append(slices.Clone(statements), fmt.Sprintf("UPDATE %s SET version = %d WHERE name = %s", t.name, from+1, t.dialect.empty))
	}
	for _, statement := range append(slices.Clone(statements), "COMMIT") {
		if _, err := c.ExecContext(ctx, statement); err != nil {
			t.rollback(c)
			return err
		}
	}
	return nil
}

func newTable(db *sql.DB, d Dialect, o Options) (*table, error) {
	if int(d) >= len(dialects) || d == 0 {
		return nil, &weir.OptionError{Op: "sqllimit", Field: "dialect", Reason: fmt.Sprintf("%d is none of PostgreSQL, MySQL and SQLite", d)}
	}
	if o.Table == "" {
		o.Table = "weir"
	}
	if !tableName.MatchString(o.Table) {
		return nil, &weir.OptionError{Op: "sqllimit", Field: "table", Reason: fmt.Sprintf("%q has other characters than ASCII letters, digits and underscores, or is longer than 63", o.Table)}
	}
	if o.Unlogged && d != PostgreSQL {
		return nil, &weir.OptionError{Op: "sqllimit", Field: "unlogged", Reason: "is for PostgreSQL: other databases have no unlogged tables"}
	}
	t := &table{db: db, dialect: &dialects[d], state: o.SQLState}
	quote := t.dialect.quote
	t.name = quote + strings.ReplaceAll(o.Table, ".", quote+"."+quote) + quote
	if t.state == nil {
		t.state = stateOf
	}
	t.versions = t.versionsOf(o.Unlogged)
	if d == PostgreSQL {
		fill := strings.NewReplacer("TABLE_", t.name, "CLOCK_", t.dialect.clock)
		t.swapText, t.oneText = fill.Replace(swapStatement), fill.Replace(oneStatement)
	}
	return t, nil
}
