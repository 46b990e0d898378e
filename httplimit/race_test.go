//go:build race

package httplimit_test

// Under the race detector sync.Pool loses values at random, so that they are made
// anew at times.
func init() { lostByPools = 4 }
