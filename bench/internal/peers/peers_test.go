package peers

import (
	"fmt"
	"testing"
	"time"
)

const day = 24 * time.Hour

var (
	generous = Limit{Burst: 1000, Refill: time.Hour, Window: 30 * day, LogCount: 1000, LogPeriod: time.Hour}
	strict   = Limit{Burst: 1, Refill: 30 * day, Window: 30 * day, LogCount: 1, LogPeriod: 30 * day}
)

func TestSinglePeersAdmitAndRefuseAsTheMixesSay(t *testing.T) {
	for _, peer := range Singles() {
		admitAndRefuse(t, peer.Info, func(l Limit) (func() (bool, error), any, error) {
			made, err := peer.New(l)
			return made.Take, made, err
		})
	}
}

func TestKeyedPeersAdmitAndRefuseAsTheMixesSay(t *testing.T) {
	for _, peer := range Keyeds() {
		admitAndRefuse(t, peer.Info, func(l Limit) (func() (bool, error), any, error) {
			made, err := peer.New(l)
			return func() (bool, error) { return made.Take("one and only") }, made, err
		})
	}
}

func admitAndRefuse(t *testing.T, info Info, make func(Limit) (func() (bool, error), any, error)) {
	t.Helper()
	if info.Kind == Harness {
		return
	}
	take, made, err := make(generous)
	if err != nil {
		t.Fatalf("%s: New(%+v): %v", info.Name, generous, err)
	}
	defer Close(made)
	for i := range 100 {
		if ok, err := take(); !ok || err != nil {
			t.Errorf("%s: call %d of a limit of 1000 was admitted %v, error %v, want true and none", info.Name, i+1, ok, err)
			break
		}
	}
	if info.AllowedOnly {
		return
	}
	take, made, err = make(strict)
	if err != nil {
		t.Fatalf("%s: New(%+v): %v", info.Name, strict, err)
	}
	defer Close(made)
	for i := range 3 {
		if ok, err := take(); ok != (i == 0) || err != nil {
			t.Errorf("%s: call %d of a limit of 1 was admitted %v, error %v, want %v and none", info.Name, i+1, ok, err, i == 0)
		}
	}
}

func TestKeyedPeersTellKeysApart(t *testing.T) {
	for _, peer := range Keyeds() {
		made, err := peer.New(strict)
		if err != nil {
			t.Fatalf("%s: New(%+v): %v", peer.Name, strict, err)
		}
		for i := range 100 {
			if ok, err := made.Take(fmt.Sprintf("user-%08d", i)); !ok || err != nil {
				t.Errorf("%s: the first call of key %d was admitted %v, error %v, want true and none", peer.Name, i, ok, err)
				break
			}
		}
		if counter, ok := made.(Counter); ok && counter.Len() != 100 {
			t.Errorf("%s remembers %d keys, want 100", peer.Name, counter.Len())
		}
		Close(made)
	}
}

func TestPeerNamesAreUnique(t *testing.T) {
	seen := map[string]bool{Loop: true}
	for _, peer := range Singles()[1:] {
		if seen[peer.Name] {
			t.Errorf("two peers are called %q", peer.Name)
		}
		seen[peer.Name] = true
	}
	for _, peer := range Keyeds()[1:] {
		if seen[peer.Name] {
			t.Errorf("two peers are called %q", peer.Name)
		}
		seen[peer.Name] = true
	}
}
