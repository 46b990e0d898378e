//go:build race

package httplimit_test

// Under the race detector sync.Pool drops values at random.
func init() { lostByPools = 4 }
