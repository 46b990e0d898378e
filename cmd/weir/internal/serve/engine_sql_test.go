package serve

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/sqltest"
)

// Two daemons share one limit in one PostgreSQL. Each gets ten times the load that both together may admit. The server is
// killed under the load and starts again. The total stays within the limit, every request has an answer, and the daemons
// go on.
func TestTwoDaemonsOnOnePostgreSQLShareALimitThroughACrash(t *testing.T) {
	const rate, burst = 100, 50
	server := sqltest.PostgreSQL(t)
	engine := "postgres://postgres@/postgres?sslmode=disable&host=" + url.QueryEscape(server.Dir)
	var urls []string
	for range 2 {
		urls = append(urls, startDaemon(t, "--http", "127.0.0.1:0", "--engine", engine, "--deadline", "500ms", "--rule", "default=token bucket 100/s burst 50"))
	}
	crashed := make(chan bool)
	go func() {
		defer close(crashed)
		time.Sleep(time.Second)
		server.Kill()
		server.Start()
	}()
	got := load(t, urls, 10*rate, 3*time.Second)
	<-crashed
	after := load(t, urls, 10*rate, time.Second)
	most := burst + rate*(got.seconds+after.seconds)
	admitted := got.admitted + after.admitted
	t.Logf("%d and %d requests to 2 daemons: %d and %d admitted, %d and %d undecided; the limit is %.1f", got.sent, after.sent, got.admitted, after.admitted, got.undecided, after.undecided, most)
	if float64(admitted) > most {
		t.Errorf("%d admitted, want at most %.1f", admitted, most)
	}
	if got.failed > 0 || after.failed > 0 {
		t.Errorf("%d and %d requests had no answer, want none", got.failed, after.failed)
	}
	if got.admitted < burst || after.admitted < rate/2 {
		t.Errorf("%d admitted, and %d after the restart", got.admitted, after.admitted)
	}
}

func TestADaemonKeepsItsLimitsInADatabase(t *testing.T) {
	for name, engine := range map[string]func(t *testing.T) string{
		"sqlite": func(t *testing.T) string { return "sqlite:" + t.TempDir() + "/weir.db" },
		"mariadb": func(t *testing.T) string {
			return "mysql://root@/test?socket=" + sqltest.MariaDB(t).Socket() + "&table=limits"
		},
	} {
		t.Run(name, func(t *testing.T) {
			where := engine(t)
			for i := range 4 {
				daemon := startDaemon(t, "--http", "127.0.0.1:0", "--engine", where, "--deadline", "2s", "--rule", "default=fixed window 3/365d")
				want := fmt.Sprintf(`{"allowed":%v`, i < 3)
				if got := postTake(t, daemon, `{"key":"alice"}`); !strings.HasPrefix(got, want) {
					t.Errorf("daemon %d: got %s, want %s…", i+1, got, want)
				}
			}
		})
	}
}
