package pace_test

import (
	"testing"

	"github.com/weirflow/weir"
)

func mustNew(t testing.TB, limit weir.Limit, options ...weir.Options) *weir.Limiter {
	t.Helper()
	lim, err := weir.NewWith(limit, append(options, weir.Options{})[0])
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

func mustKeyed[K comparable](t testing.TB, limit weir.Limit) *weir.Keyed[K] {
	t.Helper()
	keyed, err := weir.NewKeyed[K](limit)
	if err != nil {
		t.Fatal(err)
	}
	return keyed
}
