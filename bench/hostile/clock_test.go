package main

import (
	"path/filepath"
	"testing"
	"time"
)

func TestTheWallClockOfTheDaemonIsSet(t *testing.T) {
	folder := t.TempDir()
	d, err := startDaemon(program, folder, patience, "--http", "127.0.0.1:0", "--rule", "slow=token bucket 1/h burst 5")
	if err != nil {
		t.Fatal(err)
	}
	defer d.kill()
	var c client
	defer c.close()
	left := func(path string, cost int64) int64 {
		r := c.ask(d.address, path, bodyOf(request{"slow", "k", cost}), style{})
		a, err := readAnswer(r.body)
		if err != nil {
			t.Fatal(err)
		}
		return a.Remaining
	}
	if got := left(takePath, 5); got != 0 {
		t.Fatalf("after a take of 5 of 5 units %d are left", got)
	}
	wall := wallClock{file: filepath.Join(folder, clockName)}
	if err := wall.set(0, int64(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for since := time.Now(); left(peekPath, 0) != 2; time.Sleep(10 * time.Millisecond) { // it looks once a second
		if time.Since(since) > patience {
			t.Fatalf("%v after the wall clock was set 2h ahead %d units are left of a bucket with one more every hour, want 2", patience, left(peekPath, 0))
		}
	}
}

func TestStepsOfTheWallClockLoosenTheTimeAcrossThem(t *testing.T) {
	const s = int64(1e9)
	wall := wallClock{file: filepath.Join(t.TempDir(), clockName)}
	for _, step := range [][2]int64{{10 * s, 2 * s}, {20 * s, 0}} { // slow until 41 s at the latest
		if err := wall.set(step[0], step[1]); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ from, to, want int64 }{
		{0, 9 * s, 0},
		{0, 10 * s, 2 * s},
		{14 * s, 15 * s, 2 * s},
		{16 * s, 19 * s, 0},
		{16 * s, 24 * s, 2*s + s + 1},
		{26 * s, 34 * s, s + 1},
		{42 * s, 50 * s, 0},
	} {
		if got := wall.loose(tt.from, tt.to); got != tt.want {
			t.Errorf("from %d s to %d s: got %d ns, want %d", tt.from/s, tt.to/s, got, tt.want)
		}
	}
}
