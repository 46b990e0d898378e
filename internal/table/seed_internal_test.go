package table

import (
	"math/rand/v2"
	"testing"
)

// Snapshots keep hashes, so the short way to them must not change them.
func TestKeysOfTwoWordsHaveTheHashOfTheLoop(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for n := range byte(10) {
		s := NewSeed([SecretBytes]byte{n})
		for length := range 40 {
			key := make([]byte, length)
			for i := range key {
				key[i] = byte(random.Uint32())
			}
			if got, want := s.Hash(string(key)), s.hash(string(key)); got != want {
				t.Errorf("seed %d: a key of %d bytes has the hash %#x, want %#x", n, length, got, want)
			}
		}
	}
}
