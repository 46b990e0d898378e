package trial

import "sync/atomic"

// Account is the ledger of one key: what was asked for and what was admitted. Whatever answers are lost, the key has
// used at least what is Answered, and at most what is Begun.
type Account struct {
	Rule, Key       string
	Answered, Begun atomic.Int64
}

// Check compares the account with the units that are used. It reads the bounds around the call that finds them out, so
// that others may use the key meanwhile.
func (a *Account) Check(t *Trial, promise string, used func() (int64, bool)) (int64, bool) {
	least := a.Answered.Load()
	n, known := used()
	if most := a.Begun.Load(); known && (n < least || n > most) {
		t.Break(promise, "%s, %q: %d to %d units were admitted, and %d are counted", a.Rule, a.Key, least, most, n)
	}
	return n, known
}
