package sqlengine

import (
	"strings"
	"testing"
)

func TestAURLNamesADatabase(t *testing.T) {
	for where, want := range map[string]string{
		"postgres://u:p@h/d?table=a.b&create=0&sslmode=disable":  "pgx postgres://u:p@h/d?sslmode=disable",
		"mysql://u:p@h:1/d?tls=true":                             "mysql u:p@tcp(h:1)/d?interpolateParams=true&tls=true",
		"mysql://u@h/d?interpolateParams=false":                  "mysql u@tcp(h)/d?interpolateParams=false",
		"mariadb://u@/d?socket=/s":                               "mysql u@unix(/s)/d?interpolateParams=true",
		"sqlite:weir.db":                                         "sqlite file:weir.db?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)",
		"sqlite:weir.db?vfs=unix-dotfile&table=t":                "sqlite file:weir.db?vfs=unix-dotfile&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)",
		"sqlite:///a%3Fb.db":                                     "sqlite file:/a%3Fb.db?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)",
		"postgres://u@a:1,b:2/d?target_session_attrs=read-write": "pgx postgres://u@a:1,b:2/d?target_session_attrs=read-write",
		"sqlite:///var/weir.db":                                  "sqlite file:/var/weir.db?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)",
	} {
		if !Names(where) {
			t.Errorf("%s names no database", where)
		}
		s, err := parse(where)
		if err != nil || s.driver+" "+s.name != want {
			t.Errorf("%s: got %+v and %v, want %s", where, s, err, want)
		}
	}
	for _, where := range []string{"redis://h", "memory", "sqlite", ""} {
		if Names(where) {
			t.Errorf("%s names a database", where)
		}
	}
}

func TestABadURLIsAnErrorWithoutItsPassword(t *testing.T) {
	for where, want := range map[string]string{
		"postgres://u:secret@h:port/d":       "malformed",
		"postgres://u:secret@h/d?table=a;b":  "malformed",
		"postgres://u:secret@h/d?table=a-b":  "table",
		"mysql://u:secret@/d":                "host",
		"sqlite:":                            "file",
		"sqlite:a#b":                         "%23",
		"mysql://u:secret@h":                 "no database",
		"sqlite::memory:":                    "memory",
		"sqlite:x?mode=memory":               "memory",
		"postgres://u:secret@h/d?create=no":  "create=no",
		"postgres://u:secret@h/d?unlogged=":  "unlogged=",
		"mysql://u:secret@h/d?unlogged=1":    "unlogged",
		"mysql://u:secret@h/d?table=a%20b.c": "table",
	} {
		err := Check(where)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want an error about %s without the password", where, err, want)
		}
	}
	if !HasPassword("postgres://u:p@h/d") || HasPassword("postgres://u@h/d") || !HasPassword("postgres://h/d?password=p") {
		t.Error("HasPassword does not find the password")
	}
}
