package weir

import "context"

// KeyLimiter is one key of a Keyed, for functions that pace a single subject.
// Keyed.For makes it.
type KeyLimiter[K comparable] struct {
	keyed *Keyed[K]
	key   K
}

// For returns the limiter of one key. It allocates nothing and keeps no state:
// every KeyLimiter of a key shares the state of that key.
func (k *Keyed[K]) For(key K) KeyLimiter[K] { return KeyLimiter[K]{k, key} }

// WaitTurn is Keyed.WaitTurn for the key.
func (l KeyLimiter[K]) WaitTurn(ctx context.Context, turn Turn) error {
	return l.keyed.WaitTurn(ctx, l.key, turn)
}

// Record is Keyed.Record for the key.
func (l KeyLimiter[K]) Record(n int64) Decision { return l.keyed.Record(l.key, n) }
