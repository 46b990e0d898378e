package table_test

import (
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weirflow/weir/internal/table"
)

func seed(n byte) *table.Seed { return table.NewSeed([table.SecretBytes]byte{n}) }

func TestHashIsTheSameForOneSecretAndAnotherForAnother(t *testing.T) {
	if one, other := seed(1), seed(1); one.Hash("alice") != other.Hash("alice") {
		t.Error("one secret, two hashes of one key")
	}
	if seed(1).Hash("alice") == seed(2).Hash("alice") {
		t.Error("two secrets, one hash")
	}
}

// similarKeys returns keys that differ in one byte, one bit, their length or trailing zeros.
func similarKeys() (keys []string) {
	for length := range 40 {
		keys = append(keys, strings.Repeat("\x00", length), strings.Repeat("a", length))
		for i := range length {
			for bit := range 8 {
				key := []byte(strings.Repeat("a", length))
				key[i] ^= 1 << bit
				keys = append(keys, string(key))
			}
		}
	}
	return append(keys, strings.Repeat("a", table.MaxKey), strings.Repeat("a", table.MaxKey+1))
}

func TestNoSimilarKeysCollideUnderAnySeed(t *testing.T) {
	keys := similarKeys()
	for n := range byte(20) {
		s, seen := seed(n), map[table.Hash]string{}
		for _, key := range keys {
			if other, ok := seen[s.Hash(key)]; ok && other != key {
				t.Errorf("seed %d: %q and %q collide", n, key, other)
			}
			seen[s.Hash(key)] = key
		}
	}
}

func TestOneBitOfAKeyChangesHalfOfItsHash(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	changed, trials := 0, 0
	for n := range byte(10) {
		s := seed(n)
		for range 2000 {
			key := make([]byte, 1+random.IntN(30))
			for i := range key {
				key[i] = byte(random.Uint32())
			}
			before := s.Hash(string(key))
			key[random.IntN(len(key))] ^= 1 << random.IntN(8)
			changed += bits.OnesCount64(uint64(before ^ s.Hash(string(key))))
			trials++
		}
	}
	if mean := float64(changed) / float64(trials); mean < 31.5 || mean > 32.5 {
		t.Errorf("%.2f bits change on average, want 32", mean)
	}
}

func BenchmarkHash(b *testing.B) {
	s, m := seed(1), maphash.MakeSeed()
	for _, length := range []int{5, 13, 42} {
		key := strings.Repeat("k", length)
		b.Run("ours", func(b *testing.B) {
			for b.Loop() {
				s.Hash(key)
			}
		})
		b.Run("maphash", func(b *testing.B) {
			for b.Loop() {
				maphash.String(m, key)
			}
		})
	}
}
