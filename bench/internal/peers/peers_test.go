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

func TestPeersAdmitAndRefuseAsTheMixesSay(t *testing.T) {
	for _, peer := range append(Singles(), Keyeds()...) {
		if peer.Kind == Harness {
			continue
		}
		admits(t, peer, generous, 100, 100)
		if !peer.AllowedOnly {
			admits(t, peer, strict, 3, 1)
		}
	}
}

// admits checks that the first calls are admitted, and the later ones refused.
func admits(t *testing.T, peer Peer, limit Limit, calls, first int) {
	t.Helper()
	made, err := peer.New(limit)
	if err != nil {
		t.Fatalf("%s: New(%+v): %v", peer.Name, limit, err)
	}
	defer made.Stop()
	for i := range calls {
		if ok, err := made.Take("one and only"); ok != (i < first) || err != nil {
			t.Errorf("%s: call %d of %+v was admitted %v, error %v, want %v and none", peer.Name, i+1, limit, ok, err, i < first)
			return
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
		if made.Len != nil && made.Len() != 100 {
			t.Errorf("%s remembers %d keys, want 100", peer.Name, made.Len())
		}
		made.Stop()
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
