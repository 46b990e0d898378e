// Package workload makes the keys that the peers are asked about, beforehand,
// and knows how many of them are distinct. Start with Mixes.
package workload

import (
	"math"
	"math/rand/v2"
	"strings"
)

// KeyBytes is how long every key is.
const KeyBytes = 13

// Key is the text of key number i, to 99,999,999, made anew.
func Key(i int) string {
	text := keyText(i)
	return string(text[:])
}

func keyText(i int) [KeyBytes]byte {
	text := [KeyBytes]byte{'u', 's', 'e', 'r', '-'}
	for at := KeyBytes - 1; at >= len("user-"); at-- {
		text[at] = byte('0' + i%10)
		i /= 10
	}
	return text
}

// Sequence is keys in the order in which they are asked about. Their texts lie
// side by side in that order, so that reading a key costs next to nothing, as
// for a server that has just read it from the wire.
type Sequence struct {
	text string
	ids  []uint32
}

func newSequence(ids []uint32) *Sequence {
	var text strings.Builder
	text.Grow(len(ids) * KeyBytes)
	for _, id := range ids {
		key := keyText(int(id))
		text.Write(key[:])
	}
	return &Sequence{text.String(), ids}
}

// Len is how many keys the sequence has until it repeats.
func (s *Sequence) Len() int { return len(s.ids) }

// Key is the key at a position below Len.
func (s *Sequence) Key(position int) string {
	return s.text[position*KeyBytes : position*KeyBytes+KeyBytes]
}

// Mark sets the bits of the keys of count positions from the first one on.
func (s *Sequence) Mark(seen []uint64, first, count int) {
	for i := range min(count, len(s.ids)) {
		id := s.ids[(first+i)%len(s.ids)]
		seen[id/64] |= 1 << (id % 64)
	}
}

// Uniform draws from n keys, each as likely as any other.
func Uniform(n, draws int, seed uint64) *Sequence {
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	ids := make([]uint32, draws)
	for i := range ids {
		ids[i] = uint32(random.IntN(n))
	}
	return newSequence(ids)
}

// Zipf draws from n keys: key i with a chance in proportion to 1/(i+1)^s.
func Zipf(n, draws int, s float64, seed uint64) *Sequence {
	zipf := rand.NewZipf(rand.New(rand.NewPCG(seed, uint64(n))), s, 1, uint64(n-1))
	scatter := rand.New(rand.NewPCG(1, 1)).Perm(n) // popular keys are no neighbours
	ids := make([]uint32, draws)
	for i := range ids {
		ids[i] = uint32(scatter[zipf.Uint64()])
	}
	return newSequence(ids)
}

// Fresh is n keys from the first one on that never repeat.
func Fresh(first, n int) *Sequence {
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = uint32(first + i)
	}
	return newSequence(ids)
}

// uniformDistinct is how many of n keys are expected in so many draws.
func uniformDistinct(n, draws int) float64 {
	return float64(n) * -math.Expm1(float64(draws)*math.Log1p(-1/float64(n)))
}

// zipfDistinct is the same for Zipf. Far from the head, neighbours are as
// likely as one another to a hundredth of a percent, and are summed as one.
func zipfDistinct(n, draws int, s float64) (sum float64) {
	var total float64
	zipfGroups(n, s, func(weight float64, keys int) { total += weight * float64(keys) })
	zipfGroups(n, s, func(weight float64, keys int) {
		sum -= float64(keys) * math.Expm1(float64(draws)*math.Log1p(-weight/total))
	})
	return sum
}

func zipfGroups(n int, s float64, visit func(weight float64, keys int)) {
	for i := 0; i < n; {
		keys := min(max(1, i/128), n-i)
		visit(math.Pow(float64(i)+float64(keys+1)/2, -s), keys)
		i += keys
	}
}
