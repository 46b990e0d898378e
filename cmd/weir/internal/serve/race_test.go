//go:build race

package serve

// The race detector multiplies the memory of a program.
func init() { idleMemory = 1 << 20 }
