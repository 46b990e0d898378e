// Package workload prepares the keys of the measurements and knows how many of them are distinct. Start with Mixes.
package workload

import (
	"math"
	"math/rand/v2"
	"strings"
)

// KeyBytes is the length of every key.
const KeyBytes = 13

// Key returns the text of key number i, up to 99,999,999, as a new string.
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

// Sequence is the keys of a measurement in order. Their texts lie side by side in that order, so that reading a key
// is cheap, as in a server that has just read it from the network.
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

// Len returns the number of keys before the sequence repeats.
func (s *Sequence) Len() int { return len(s.ids) }

// Key returns the key at a position below Len.
func (s *Sequence) Key(position int) string {
	return s.text[position*KeyBytes : position*KeyBytes+KeyBytes]
}

// Mark sets the bits of the keys at count positions from first on.
func (s *Sequence) Mark(seen []uint64, first, count int) {
	for i := range min(count, len(s.ids)) {
		id := s.ids[(first+i)%len(s.ids)]
		seen[id/64] |= 1 << (id % 64)
	}
}

// Uniform draws from n equally likely keys.
func Uniform(n, draws int, seed uint64) *Sequence {
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	ids := make([]uint32, draws)
	for i := range ids {
		ids[i] = uint32(random.IntN(n))
	}
	return newSequence(ids)
}

// Zipf draws from n keys: key i with a probability proportional to 1/(i+1)^s.
func Zipf(n, draws int, s float64, seed uint64) *Sequence {
	zipf := rand.NewZipf(rand.New(rand.NewPCG(seed, uint64(n))), s, 1, uint64(n-1))
	scatter := rand.New(rand.NewPCG(1, 1)).Perm(n) // scatter the popular keys
	ids := make([]uint32, draws)
	for i := range ids {
		ids[i] = uint32(scatter[zipf.Uint64()])
	}
	return newSequence(ids)
}

// Fresh returns n keys from first on, which never repeat.
func Fresh(first, n int) *Sequence {
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = uint32(first + i)
	}
	return newSequence(ids)
}

// uniformDistinct returns the expected number of distinct keys in draws from n.
func uniformDistinct(n, draws int) float64 {
	return float64(n) * -math.Expm1(float64(draws)*math.Log1p(-1/float64(n)))
}

// zipfDistinct returns the same for Zipf. Far from the head it sums neighbouring keys together, whose probabilities
// differ by less than a hundredth of a percent.
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
