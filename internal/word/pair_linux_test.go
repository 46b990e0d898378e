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
	e = readOnly(t, e)
	var a algorithm.Answer
	onReadOnly(t, func() {
		if got := l.takeHeld(e, pairKey, pairNow, 1, &a); got != decided || a.Allowed || a.RetryAfter == 0 {
			t.Errorf("result %d, %+v, want a refusal", got, a)
		}
	})
}

func TestARefusalOfARowWritesNothing(t *testing.T) {
	window, whole, fine := algorithm.NewFixedWindow(9, 3600e9), algorithm.NewTokenBucket(10, 1e9, 9), algorithm.NewTokenBucket(13, 1e8, 9)
	for _, limits := range [][]algorithm.Worder{
		{whole, window}, {window, whole}, {fine, window}, {window, fine}, {whole, fine, window}, {fine, fine},
	} {
		r, e := exhaustedRow(t, 9, limits...)
		e = readOnly(t, e)
		var a algorithm.Answer
		onReadOnly(t, func() {
			if done := r.takeUnheld(e, pairKey, pairNow, 1, &a); !done || a.Allowed || a.RetryAfter == 0 {
				t.Errorf("%T: %v, %+v, want a refusal", limits, done, a)
			}
		})
	}
}

// readOnly returns a copy of an entry in memory that can only be read.
func readOnly(t *testing.T, e table.Entry) table.Entry {
	t.Helper()
	page, err := syscall.Mmap(-1, 0, syscall.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(page) })
	words := unsafe.Slice((*uint64)(unsafe.Pointer(&page[0])), len(e.Words))
	copy(words, e.Words)
	if err := syscall.Mprotect(page, syscall.PROT_READ); err != nil {
		t.Fatal(err)
	}
	return table.Entry{Words: words, Layout: e.Layout}
}

// onReadOnly fails the test if f writes to memory that can only be read.
func onReadOnly(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("a refusal wrote: %v", r)
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	f()
}
