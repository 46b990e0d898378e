package sqllimit

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// failure is an error of the database.
type failure struct {
	err     error
	counted weir.Counted
}

func (f *failure) Error() string            { return f.err.Error() }
func (f *failure) Unwrap() error            { return f.err }
func (f *failure) WasCounted() weir.Counted { return f.counted }

// fails returns an error of a statement. committing says that the statement may have been committed before it failed:
// without an answer of the server, that is unknown.
func (t *table) fails(err error, committing bool) error {
	state := t.state(err)
	switch {
	case conflicts[state]:
		return fmt.Errorf("%w: %w", enginekit.ErrConflict, err)
	case committing && (state == "" || unanswered(state)):
		return &failure{err, weir.CountedUnknown}
	}
	return &failure{err, weir.CountedNo}
}

// conflicts are the states of failures where a retry of the statement may succeed: serialization failure, deadlock, lock
// not available, and SQLite's busy and locked.
var conflicts = map[string]bool{"40001": true, "40P01": true, "55P03": true, sqliteCode(5): true, sqliteCode(6): true}

// unanswered reports whether a server, or a pooler before it, ended the connection and not just the statement.
func unanswered(state string) bool {
	return strings.HasPrefix(state, "08") || strings.HasPrefix(state, "57P0") || state == "40003"
}

func sqliteCode(code int64) string { return "SQLite " + strconv.FormatInt(code&0xff, 10) }

// stateOf returns the state of an error of a known driver, or "".
func stateOf(err error) string {
	var method interface{ SQLState() string }
	if errors.As(err, &method) {
		return method.SQLState()
	}
	var sqlite interface{ Code() int }
	if errors.As(err, &sqlite) {
		return sqliteCode(int64(sqlite.Code()))
	}
	for ; err != nil; err = errors.Unwrap(err) {
		v := reflect.Indirect(reflect.ValueOf(err))
		if v.Kind() != reflect.Struct {
			continue
		}
		if state, ok := fieldOf(v, "SQLState").([5]byte); ok {
			return string(state[:])
		}
		if code := v.FieldByName("Code"); code.IsValid() && code.CanInt() {
			return sqliteCode(code.Int())
		}
	}
	return ""
}

func fieldOf(v reflect.Value, name string) any {
	if f := v.FieldByName(name); f.IsValid() && f.CanInterface() {
		return f.Interface()
	}
	return nil
}
