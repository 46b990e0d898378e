package weir

import "context"

// Pacer grants turns. A *Limiter is one; so are one key of a Keyed
// (Keyed.For) and one class of another Pacer (InClass). What paces sequences,
// streams and calls takes any of them, and goes on sharing its limit with
// whoever else uses it.
type Pacer interface {
	// WaitTurn returns nil when the cost of the turn was taken. A cost that can
	// never fit is a *CostError that tells the capacity. A Pacer over another
	// passes the turn on as it came: it knows who gives slots back.
	WaitTurn(ctx context.Context, turn Turn) error
	// Record with a negative cost gives back what was taken and not used.
	Record(n int64) Decision
}

var _ Pacer = (*Limiter)(nil)

// Do runs fn when it is its turn, at a cost of 1, and returns what fn does. If
// the turn is refused, fn is not run and the error says why, as from
// Limiter.Wait. What fn took is spent, whether it fails or panics. A Concurrency
// slot is held while fn runs, and given back when it returns or panics.
func Do[T any](ctx context.Context, p Pacer, fn func(context.Context) (T, error)) (T, error) {
	t := turns{pacer: p}
	if err := t.take(ctx, 1); err != nil {
		var none T
		return none, err
	}
	defer t.done()
	return fn(ctx)
}

// InClass is p for the callers of one class of Options.Weights, whatever class
// their turns name.
func InClass(p Pacer, class int) Pacer { return inClass{p, class} }

type inClass struct {
	Pacer
	class int
}

func (c inClass) WaitTurn(ctx context.Context, turn Turn) error {
	turn.Class = c.class
	return c.Pacer.WaitTurn(ctx, turn)
}

// For is the Pacer of one key.
func (k *Keyed[K]) For(key K) Pacer { return ofKey[K]{k, key} }

type ofKey[K comparable] struct {
	keyed *Keyed[K]
	key   K
}

func (o ofKey[K]) WaitTurn(ctx context.Context, turn Turn) error {
	return o.keyed.WaitTurn(ctx, o.key, turn)
}

func (o ofKey[K]) Record(n int64) Decision { return o.keyed.Record(o.key, n) }
