package table

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// Seed hashes keys: multilinear hashing with multipliers of 128 bits (Dietzfelbinger 1996), derived from 32 secret
// bytes. For any two keys the probability over the seed that they share a Hash is 2^-64. So no set of keys collides
// under every seed, and among 10 million keys the probability of a collision is below 3e-6. Unlike the seed of
// hash/maphash, a Seed can be saved.
type Seed struct {
	secret      [SecretBytes]byte
	constant    multiplier
	length      multiplier
	multipliers [maxWords]multiplier
}

const maxWords = MaxKey / 8

type multiplier struct{ high, low uint64 }

// NewSeed makes the hash of a secret.
func NewSeed(secret [SecretBytes]byte) *Seed {
	s := &Seed{secret: secret}
	s.constant, s.length = s.multiplier(0), s.multiplier(1)
	for i := range s.multipliers {
		s.multipliers[i] = s.multiplier(i + 2)
	}
	return s
}

// Secret returns the secret of the seed.
func (s *Seed) Secret() [SecretBytes]byte { return s.secret }

// multiplier returns the n-th, from SHA-256 of the secret and n.
func (s *Seed) multiplier(n int) multiplier {
	digest := sha256.Sum256(binary.LittleEndian.AppendUint64(s.secret[:SecretBytes:SecretBytes], uint64(n)))
	return multiplier{binary.LittleEndian.Uint64(digest[:8]), binary.LittleEndian.Uint64(digest[8:16])}
}

// Hash returns the hash of a key of at most MaxKey bytes, or for a longer key the hash of its first MaxKey bytes and
// its length.
func (s *Seed) Hash(key string) Hash {
	sum := s.constant.add(s.length, uint64(len(key)))
	key = key[:min(len(key), MaxKey)]
	if len(key) < 8 {
		return mix(sum.add(s.multipliers[0], short(key)).high)
	}
	// The last word overlaps the one before: together with the length the
	// words say exactly what the key was.
	last := len(key) - 8
	i := 0
	for ; 8*i < last; i++ {
		sum = sum.add(s.multipliers[i], word(key, 8*i))
	}
	return mix(sum.add(s.multipliers[i], word(key, last)).high)
}

// add returns the sum m + by × x modulo 2^128.
func (m multiplier) add(by multiplier, x uint64) multiplier {
	high, low := bits.Mul64(by.low, x)
	high += by.high * x
	low, carry := bits.Add64(m.low, low, 0)
	return multiplier{m.high + high + carry, low}
}

// word returns the 8 bytes of key from i on, little endian; compilers make one load
// of it.
func word(key string, i int) uint64 {
	k := key[i : i+8]
	return uint64(k[0]) | uint64(k[1])<<8 | uint64(k[2])<<16 | uint64(k[3])<<24 |
		uint64(k[4])<<32 | uint64(k[5])<<40 | uint64(k[6])<<48 | uint64(k[7])<<56
}

// short returns the up to 7 bytes of key.
func short(key string) (x uint64) {
	for i := range len(key) {
		x |= uint64(key[i]) << (8 * i)
	}
	return x
}

// mix spreads the bits (the finalizer of MurmurHash3): each value of the hash
// has one image, and nearby ones land far apart.
func mix(x uint64) Hash {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return Hash(x ^ x>>33)
}
