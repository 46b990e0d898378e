package rules

import (
	"math/rand/v2"
	"net"
	"testing"

	"github.com/weirflow/weir/internal/randtest"
)

func TestAddressesAreSplitAsByPackageNet(t *testing.T) {
	for seed := range randtest.Seeds(t, 10, 3) {
		random := rand.New(rand.NewPCG(seed, 62))
		for range 20_000 {
			text := make([]byte, random.IntN(8))
			for i := range text {
				text[i] = "a:[]1:"[random.IntN(6)]
			}
			_, _, err := net.SplitHostPort(string(text))
			if got := isHostPort(string(text)); got != (err == nil) {
				t.Fatalf("%q: got %v, package net says %v", text, got, err)
			}
		}
	}
}
