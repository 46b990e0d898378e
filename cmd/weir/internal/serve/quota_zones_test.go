package serve

import (
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
)

// dayIn returns a quota of 20 units a day, whose windows begin at a time of day in a zone.
func dayIn(zone string, at time.Duration) weir.Quota {
	return weir.Quota{Count: 20, Unit: weir.Day, Zone: zone, At: at}
}

// Two daemons disagree about the day, as during a rollout, and share a key. Between two boundaries of either, they admit no more
// than the count together.
func TestDaemonsInTwoZonesAdmitNoMoreThanTheCount(t *testing.T) {
	limits := []weir.Quota{dayIn("Asia/Tokyo", 0), dayIn("America/New_York", 6*time.Hour)}
	for name, start := range movable {
		t.Run(name, func(t *testing.T) {
			where, set := start(t)
			var daemons []*quotaDaemon
			for _, limit := range limits {
				url := startDaemon(t, append(quotaRules(limit.String()), "--http", "127.0.0.1:0", "--engine", where, "--deadline", "10s")...)
				daemons = append(daemons, &quotaDaemon{ask: func(path, body string) string { return ask(t, url+path, body) }})
			}
			admitInTurns(t, daemons, limits, func(at time.Time) { set(time.Until(at)) })
		})
	}
}

// stub is the data of a zone that is always five hours ahead of UTC, in the form of RFC 9636: a header, one type of time and its name.
const stub = "TZif" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
	"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x04" + "\x00\x00\x46\x50\x00\x00" + "NEW\x00"

// Two daemons have other data of one zone, as after a change of the law that only one of them knows.
func TestDaemonsWithOtherZoneDataAdmitNoMoreThanTheCount(t *testing.T) {
	folder := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(folder, "Europe"), 0o700))
	must(t, os.WriteFile(filepath.Join(folder, "Europe", "Paris"), []byte(stub), 0o600))
	where, set := movable["redis"](t)
	var daemons []*quotaDaemon
	_, end, _ := weir.Kit.CalendarWindow(dayIn("Europe/Paris", 0), time.Now())
	for _, offset := range []string{end.Format("-07:00"), "+05:00"} {
		cmd := daemonCommand(t, append(quotaRules("quota 20/day in Europe/Paris"), "--http", "127.0.0.1:0", "--engine", where, "--deadline", "10s")...)
		if len(daemons) > 0 {
			cmd.Env = append(os.Environ(), "ZONEINFO="+folder)
		}
		url := startAndFindURL(t, cmd)
		t.Cleanup(func() { must(t, stopDaemon(cmd)) })
		d := &quotaDaemon{ask: func(path, body string) string { return ask(t, url+path, body) }}
		daemons = append(daemons, d)
		if got := d.ask("/v1/peek", `{"rule":"q0","key":"a"}`); !strings.Contains(got, `T00:00:00`+offset+`"`) {
			t.Fatalf("got %s, want the end of a day at %s", got, offset)
		}
	}
	admitInTurns(t, daemons, []weir.Quota{dayIn("Europe/Paris", 0), dayIn("Etc/GMT-5", 0)}, func(at time.Time) { set(time.Until(at)) })
}

// admitInTurns moves the clock by some hours at a time, over the changes of New York's clocks, and has all daemons ask at once.
func admitInTurns(t *testing.T, daemons []*quotaDaemon, limits []weir.Quota, set func(time.Time)) {
	random := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	now, until := instant(t, "2027-03-12T00:30:00Z"), time.Time{} // boundaries are on whole hours
	var admitted atomic.Int64
	total := int64(0)
	for range 40 {
		if !now.Before(until) {
			total, until = total+admitted.Swap(0), now.AddDate(1, 0, 0)
			for _, limit := range limits {
				if _, end, _ := weir.Kit.CalendarWindow(limit, now); end.Before(until) {
					until = end
				}
			}
		}
		set(now)
		var asking sync.WaitGroup
		for _, d := range daemons {
			costs := [4]int{1 + random.IntN(7), 1 + random.IntN(7), 1 + random.IntN(7), 1 + random.IntN(7)}
			asking.Go(func() {
				for _, cost := range costs { // a refusal would be remembered for a second
					cost = min(cost, d.asks(t, "peek", "q0", "k", 0).Remaining)
					if cost > 0 && d.asks(t, "take", "q0", "k", cost).Allowed {
						admitted.Add(int64(cost))
					}
				}
			})
		}
		asking.Wait()
		if got := admitted.Load(); got > limits[0].Count {
			t.Fatalf("at %v %d units are admitted before %v, want %d at most", now, got, until, limits[0].Count)
		}
		now = now.Add(time.Duration(1+random.IntN(7)) * time.Hour)
	}
	if least := 5 * limits[0].Count; total < least {
		t.Errorf("in a week %d units are admitted, want %d at least", total, least)
	}
}

// A reload changes the zone and the first day of a year while callers ask. Both years began months ago.
func TestAReloadBetweenZonesUnderLoadAdmitsTheCountOnce(t *testing.T) {
	const count = 400
	folder, now := t.TempDir(), time.Now()
	years := []weir.Quota{
		{Count: count, Unit: weir.Year, Month: now.AddDate(0, -2, -now.Day()).Month(), Day: 1, Zone: "Asia/Tokyo"},
		{Count: count, Unit: weir.Year, Month: now.AddDate(0, -4, -now.Day()).Month(), Day: 15, Zone: "Pacific/Honolulu", At: 90 * time.Minute},
	}
	use := func(limit weir.Quota) {
		part := filepath.Join(folder, "part")
		must(t, os.WriteFile(part, []byte("rules: [{name: year, limit: '"+limit.String()+"'}]"), 0o600))
		must(t, os.Rename(part, filepath.Join(folder, "weir.yaml")))
	}
	use(years[0])
	cmd := daemonCommand(t, "--http", "127.0.0.1:0", "--config", filepath.Join(folder, "weir.yaml"))
	url := startAndFindURL(t, cmd)
	t.Cleanup(func() { must(t, stopDaemon(cmd)) })
	ends := []string{`T00:00:00+09:00"`, `T01:30:00-10:00"`}
	var admitted, inTokyo, inHonolulu atomic.Int64
	var asking sync.WaitGroup
	asks := make(chan bool) // one for each question
	for range 4 {
		asking.Go(func() {
			for range asks {
				answer := postTake(t, url, `{"rule":"year","key":"k"}`)
				if !strings.HasPrefix(answer, `{"allowed":true`) {
					continue
				}
				admitted.Add(1)
				if strings.Contains(answer, ends[0]) {
					inTokyo.Add(1)
				} else if strings.Contains(answer, ends[1]) {
					inHonolulu.Add(1)
				}
			}
		})
	}
	ask := func() {
		for range count / 20 {
			asks <- true
		}
	}
	for i := range 10 {
		var beside sync.WaitGroup
		beside.Go(ask)
		next := (i + 1) % 2
		use(years[next])
		must(t, cmd.Process.Signal(syscall.SIGHUP))
		await(t, "the other zone is in force", func() bool {
			return strings.Contains(postTake(t, url, `{"rule":"year","key":"k","cost":0}`), ends[next])
		})
		beside.Wait()
		ask()
	}
	ask() // in vain
	close(asks)
	if asking.Wait(); admitted.Load() != count {
		t.Errorf("%d units are admitted, want %d", admitted.Load(), count)
	}
	if inTokyo.Load() == 0 || inHonolulu.Load() == 0 || inTokyo.Load()+inHonolulu.Load() != count {
		t.Errorf("%d were admitted in Tokyo and %d in Honolulu, want some in each, and all", inTokyo.Load(), inHonolulu.Load())
	}
}

// A snapshot keeps the instant of the last admission. What was counted before a restart counts afterwards in the window of the
// limit that is then in force, if it holds that instant.
func TestASnapshotCarriesAQuotaOverABoundary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &stateFile{path: filepath.Join(t.TempDir(), "state"), log: slog.New(slog.DiscardHandler)}
		for _, run := range []struct {
			at, limit string
			left      int
		}{
			{"2000-03-30T12:00:00Z", "quota 5/month from day 31 in Europe/Paris", 5}, // 29 February to 31 March
			{"2000-03-30T21:59:59Z", "quota 5/month from day 31 in Europe/Paris", 0},
			{"2000-03-30T21:59:59Z", "quota 6/month in Asia/Tokyo", 1}, // March
			{"2000-03-30T21:59:59Z", "quota 9/day in Asia/Tokyo", 9},   // a state of its own
			{"2000-03-30T22:00:00Z", "quota 5/month from day 31 in Europe/Paris", 5},
			{"2000-03-31T15:00:00Z", "quota 5/day in Asia/Tokyo", 5},                 // April in Tokyo
			{"2000-04-01T03:59:59Z", "quota 9/day in America/New_York", 4},           // the evening of 31 March
			{"2000-04-29T21:59:59Z", "quota 5/month from day 31 in Europe/Paris", 0}, // 31 March to 30 April
		} {
			engine, err := f.load()
			must(t, err)
			d := inBubble(t, engine, mustRules(t, quotaRules(run.limit)))
			d.set(instant(t, run.at))
			if got := d.asks(t, "peek", "q0", "k", 0).Remaining; got != run.left {
				t.Errorf("%s at %s: %d are left, want %d", run.limit, run.at, got, run.left)
			}
			d.asks(t, "take", "q0", "k", run.left)
			must(t, f.save(engine))
		}
	})
}
