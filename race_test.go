//go:build race

package weir_test

// To read a snapshot takes ten times as long under the race detector.
func init() { snapshotStep = 11 }
