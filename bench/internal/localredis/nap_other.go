//go:build !linux

package localredis

import "time"

// naps returns a sleep that may be 1 ms longer than it should be.
func naps() (nap func(time.Duration), awake func()) { return time.Sleep, func() {} }
