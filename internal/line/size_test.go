package line

import (
	"testing"
	"unsafe"
)

// A limiter that is sometimes busy begins a line for each first waiter, so both are no larger than their size class.
func TestALineAndAWaiterStaySmall(t *testing.T) {
	if got := unsafe.Sizeof(line{}); got > 320 {
		t.Errorf("a line takes %d bytes, want at most 320", got)
	}
	if got := unsafe.Sizeof(Waiter{}); got > 112 {
		t.Errorf("a waiter takes %d bytes, want at most 112", got)
	}
}
