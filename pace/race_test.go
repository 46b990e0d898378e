//go:build race

package pace_test

// The race detector bounds the goroutines of a program to 8128, and its bookkeeping counts as heap.
func init() { crawlersPerHost, bytesOfACaller = 5, 1<<20 }
