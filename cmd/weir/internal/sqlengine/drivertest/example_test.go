package drivertest

import (
	"context"
	"database/sql"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/sqllimit"
)

func openLimits(ctx context.Context, url string) (weir.Engine, error) {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return nil, err
	}
	return sqllimit.Open(ctx, db, sqllimit.PostgreSQL, sqllimit.Options{Create: true})
}

func TestTheExampleOfTheDocsDecides(t *testing.T) {
	e, err := openLimits(t.Context(), postgres(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	if d, err := e.Take(t.Context(), mustRule(t, "login", weir.TokenBucket{Rate: weir.PerMinute(5)}).For("alice", 1)); err != nil || !d.Allowed {
		t.Errorf("got %+v and %v", d, err)
	}
}
