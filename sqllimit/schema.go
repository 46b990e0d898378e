package sqllimit

import (
	"context"
	"fmt"
	"math"
	"strings"
)

// schemaVersion is the version of the table that this package reads and writes. The row without a name has it, so that
// every process can tell. A later version of the package brings the statements that lead to its own.
const schemaVersion = 1

// Schema returns the statements that create the table of an engine with these options, to be run by someone who may.
func Schema(d Dialect, o Options) (string, error) {
	t, err := newTable(nil, d, o)
	if err != nil {
		return "", err
	}
	return strings.Join(t.schema, ";\n") + ";\n", nil
}

func (t *table) statements(unlogged bool) []string {
	d, create := t.dialect, "CREATE TABLE IF NOT EXISTS "
	if unlogged {
		create = "CREATE UNLOGGED TABLE IF NOT EXISTS "
	}
	return []string{
		create + t.name + " (" + d.columns + ")" + d.options,
		fmt.Sprintf("%s%s (name, version, state, ends) VALUES (%s, %d, %s, %d)%s", d.ignore, t.name, d.empty, schemaVersion, d.empty, int64(math.MaxInt64), d.keep),
	}
}

// open checks the version of the table, and creates the table if it may.
func (t *table) open(ctx context.Context, create bool) error {
	version, err := t.version(ctx)
	for try := 0; create && (err != nil || version == 0) && try < 3; try++ { // another process may create it at the same time
		var failed error
		for _, statement := range t.schema {
			if _, err := t.db.ExecContext(ctx, statement); err != nil {
				failed = err
			}
		}
		if version, err = t.version(ctx); err != nil && failed != nil {
			err = failed
		}
	}
	switch {
	case err != nil:
		return t.fails(err, false)
	case version != schemaVersion:
		return fmt.Errorf("table %s has version %d, not %d; Schema returns the statements that create it", t.name, version, schemaVersion)
	}
	return nil
}

// version returns the version of the table, or 0 if its first row is missing.
func (t *table) version(ctx context.Context) (version int64, err error) {
	rows, _, err := t.Load(ctx, []string{""})
	if err != nil {
		return 0, err
	}
	return rows[0].Version, nil
}
