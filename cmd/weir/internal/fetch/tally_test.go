package fetch

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/fetch"
)

func TestFetchShowsRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var screen bytes.Buffer
		tally := &tally{Progress: cli.ProgressOn(&screen, cli.ProgressDelay)}
		tally.begin(time.Now())
		tally.listed(100)
		tally.whole()
		if got, want := tally.summary(tally.begun, false), "weir: fetched 0 pages, 0 bytes, in 0s; 100 left"; got != want {
			t.Errorf("before the first page: got %q, want %q", got, want)
		}
		page := tally.counting(strings.NewReader(strings.Repeat("x", 200*1024)))
		for range 20 {
			time.Sleep(900 * time.Millisecond) // not at the instants at which the progress looks
			io.CopyN(io.Discard, page, 10*1024)
			tally.add(fetch.Result{Outcome: fetch.Fetched})
			tally.add(fetch.Result{Outcome: fetch.Failed})
			time.Sleep(100 * time.Millisecond)
		}
		if got, want := tally.text(time.Now()), "40 URLs, 60 left, now 2/s and 10.0 KiB/s, 20 not fetched"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		time.Sleep(500 * time.Millisecond)
		tally.Stop()
		for _, want := range []string{"fetching", "40 URLs, 60 left, now 1.9", "20 not fetched"} {
			if !strings.Contains(screen.String(), want) {
				t.Errorf("the screen never showed %q: %q", want, screen.String()[max(0, screen.Len()-300):])
			}
		}
		if got, want := tally.summary(tally.begun.Add(90*time.Second), false), "weir: fetched 20 pages, 200.0 KiB, in 1m30s; 20 failed; 60 left"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
