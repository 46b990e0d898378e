package word

import (
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// A refusal must not write: it would take the memory of an exhausted key away from the other cores. Here the memory can
// only be read.
func TestARefusalOfTwoWordsWritesNothing(t *testing.T) {
	l, e := exhausted(t, 1)
	page, err := syscall.Mmap(-1, 0, syscall.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(page)
	words := unsafe.Slice((*uint64)(unsafe.Pointer(&page[0])), len(e.Words))
	copy(words, e.Words)
	if err := syscall.Mprotect(page, syscall.PROT_READ); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("a refusal wrote: %v", r)
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	var a algorithm.Answer
	if got := l.takeHeld(table.Entry{Words: words, Layout: e.Layout}, pairKey, pairNow, 1, &a); got != decided || a.Allowed || a.RetryAfter == 0 {
		t.Errorf("result %d, %+v, want a refusal", got, a)
	}
}
