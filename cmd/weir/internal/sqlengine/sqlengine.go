// Package sqlengine opens the engines of package sqllimit for the commands that have a flag --engine.
package sqlengine

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	_ "github.com/go-sql-driver/mysql" // its driver is mysql
	_ "github.com/jackc/pgx/v5/stdlib" // its driver is pgx

	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/sqllimit"
)

// FailureHint is for an engine that does not answer.
const FailureHint = "is the database up, and may the user create or use the table? docs/howto/sql.md has the statements and permissions"

// NoFolderHint is for a database whose folder is missing: an error of Open that is fs.ErrNotExist, and no failure of a server.
const NoFolderHint = "create the folder, and let the user write there"

// Engine is an engine over a database of its own.
type Engine struct {
	*sqllimit.Engine
	db *sql.DB
}

// Close closes the connections to the database. Pending decisions fail.
func (e *Engine) Close() { _ = e.db.Close() }

// Error is a failure to open an engine that may pass.
type Error struct{ Err error }

// Error is one line, even if the driver returns several.
func (e *Error) Error() string { return strings.Join(strings.Fields(e.Err.Error()), " ") }

func (e *Error) Unwrap() error { return e.Err }

// Failed reports whether err is a failure of a database.
func Failed(err error) bool {
	_, opening := errors.AsType[*Error](err)
	_, deciding := errors.AsType[*enginekit.StoreError](err)
	return opening || deciding
}

// Opening returns the failure of an engine whose table was never opened, if err is one.
func Opening(err error) (failed *sqllimit.OpenError, ok bool) {
	return errors.AsType[*sqllimit.OpenError](err)
}

// source is a parsed URL.
type source struct {
	driver  string
	name    string // of the data source, for the driver
	dialect sqllimit.Dialect
	options sqllimit.Options
}

var schemes = map[string]func(s *source, u *url.URL) error{
	"postgres": postgres, "postgresql": postgres, "mysql": mysql, "mariadb": mysql, "sqlite": sqlite,
}

// Names reports whether the value of --engine is the URL of a database.
func Names(where string) bool {
	scheme, _, found := strings.Cut(where, ":")
	return found && schemes[scheme] != nil
}

// HasPassword reports whether a URL has a password.
func HasPassword(where string) bool {
	u, err := url.Parse(where)
	if err != nil {
		return false
	}
	_, holds := u.User.Password()
	return holds || u.Query().Has("password")
}

// Check returns the error of a URL that Open could not use. It never holds a password.
func Check(where string) error {
	_, err := parse(where)
	return err
}

func parse(where string) (*source, error) {
	malformed := errors.New("the URL of the database is malformed; encode special characters of a password with %")
	u, err := url.Parse(where)
	if err != nil {
		return nil, malformed // err holds the URL
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, malformed
	}
	s := &source{options: sqllimit.Options{Table: query.Get("table"), Create: true}}
	for name, option := range map[string]*bool{"create": &s.options.Create, "unlogged": &s.options.Unlogged} {
		if query.Has(name) {
			if *option, err = strconv.ParseBool(query.Get(name)); err != nil {
				return nil, fmt.Errorf("%s=%s in the URL of the database: it is 0 or 1", name, query.Get(name))
			}
		}
		query.Del(name)
	}
	query.Del("table")
	u.RawQuery = query.Encode()
	if err := schemes[u.Scheme](s, u); err != nil {
		return nil, err
	}
	_, err = sqllimit.Schema(s.dialect, s.options)
	return s, err
}

func postgres(s *source, u *url.URL) error {
	s.driver, s.dialect, s.name = "pgx", sqllimit.PostgreSQL, u.String()
	return nil
}

// mysql converts a URL to the form of the driver: USER:PASSWORD@tcp(HOST)/DATABASE?OPTIONS.
func mysql(s *source, u *url.URL) error {
	query := u.Query()
	address := "tcp(" + u.Host + ")"
	if socket := query.Get("socket"); socket != "" {
		address = "unix(" + socket + ")"
		query.Del("socket")
	} else if u.Host == "" {
		return errors.New("the URL of the database has no host; it is mysql://USER@HOST/DATABASE, or mysql://USER@/DATABASE?socket=PATH")
	}
	if len(u.Path) < 2 {
		return errors.New("the URL of the database names no database; it is mysql://USER@HOST/DATABASE")
	}
	if !query.Has("interpolateParams") {
		query.Set("interpolateParams", "true") // saves a round trip for each statement
	}
	user := u.User.Username()
	if password, ok := u.User.Password(); ok {
		user += ":" + password
	}
	s.driver, s.dialect, s.name = "mysql", sqllimit.MySQL, user+"@"+address+u.Path+"?"+query.Encode()
	return nil
}

// sqlite opens a file so that a commit is on the disk, and other processes wait.
func sqlite(s *source, u *url.URL) error {
	file := cmp.Or(u.Opaque, u.EscapedPath())
	if file == "" || u.Fragment != "" {
		return errors.New("the URL of the database names no file; it is sqlite:FILE, with %23 for #")
	}
	if query := u.Query(); file == ":memory:" || query.Get("mode") == "memory" {
		return errors.New("each connection to a database in memory has one of its own; leave --engine out to keep limits in memory")
	}
	s.driver, s.dialect = "sqlite", sqllimit.SQLite
	s.name = "file:" + file + "?" + strings.TrimPrefix(u.RawQuery+"&", "&") + "_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	return nil
}

// File returns the path of the file that a URL of SQLite names, or "" of any other engine.
func File(where string) string {
	if !Names(where) {
		return ""
	}
	s, err := parse(where)
	if err != nil || s.driver != "sqlite" {
		return ""
	}
	path, _, _ := strings.Cut(strings.TrimPrefix(s.name, "file:"), "?")
	if plain, err := url.PathUnescape(path); err == nil {
		path = plain
	}
	return path
}

// connections bounds the connections of a process: what the engine uses at a time, and as many for other work.
const connections = 8

// Open opens the engine of a URL, and creates its table unless the URL says create=0. later allows for a server that does
// not answer: the first calls of the engine that reach it open the table.
func Open(ctx context.Context, where string, later bool) (*Engine, error) {
	s, err := parse(where)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(sql.Drivers(), s.driver) {
		return nil, fmt.Errorf("this program has no driver of %s: it was built with the tag no%[1]s; build it without", s.driver)
	}
	if s.driver == "sqlite" {
		if _, err := os.Stat(filepath.Dir(File(where))); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("sqlengine: open: the folder of the database: %w", err)
		}
	}
	db, err := sql.Open(s.driver, s.name)
	if err != nil {
		return nil, fmt.Errorf("the %s driver refuses the URL", s.driver) // its error may hold the password
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	s.options.ConnectLater = later
	e, err := sqllimit.Open(ctx, db, s.dialect, s.options)
	if err != nil {
		_ = db.Close()
		return nil, &Error{err}
	}
	return &Engine{e, db}, nil
}
