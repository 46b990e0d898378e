package word

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// A refusal must not write: it would take the memory of an exhausted key away from the other cores. Here the memory can
// only be read. A unit of the second rate takes 5 ns, less than a step of the first word, which therefore tells no refusal.
func TestARefusalOfTwoWordsWritesNothing(t *testing.T) {
	for _, rate := range [][2]int64{{13, 100_000_000}, {76, 381}} {
		for _, burst := range []int64{1, 7} {
			l, e := exhausted(t, rate[0], rate[1], burst)
			e = readOnly(t, e)
			s := exhaustedSingle(t, rate[0], rate[1], burst)
			single := &copyToReadOnly(t, s, 1)[0]
			for _, n := range []int64{1, burst} {
				name := fmt.Sprintf("%d of %d, %d in %d ns", n, burst, rate[0], rate[1])
				checkRefusals(t, name, map[string]func() (allowed, done bool){
					"a key, Take": func() (bool, bool) {
						var a algorithm.Answer
						at := l.pairAt(e, pairKey)
						_, r := l.takePair(at, at.glimpse(), 0, pairNow, n, &a)
						return a.Allowed || a.RetryAfter == 0, r == decided
					},
					"a key, Allow": func() (bool, bool) {
						at := l.pairAt(e, pairKey)
						allowed, r := l.takePair(at, at.glimpse(), 0, pairNow, n, nil)
						return allowed, r == decided
					},
					"a Single, Take": func() (bool, bool) {
						var a algorithm.Answer
						done := single.Take(pairNow, n, &a)
						return a.Allowed || a.RetryAfter == 0, done
					},
					"a Single, Allow": func() (bool, bool) { return single.Allow(pairNow, n) },
				})
			}
			runtime.KeepAlive(s) // the copy does not keep its limit
		}
	}
}

func checkRefusals(t *testing.T, limit string, decisions map[string]func() (allowed, done bool)) {
	for name, decide := range decisions {
		onReadOnly(t, func() {
			if allowed, done := decide(); allowed || !done {
				t.Errorf("%s: %s: allowed %v, done %v, want a refusal", limit, name, allowed, done)
			}
		})
	}
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
			if done := takeOn(r, e, 1, &a); done != decided || a.Allowed || a.RetryAfter == 0 {
				t.Errorf("%T: %v, %+v, want a refusal", limits, done, a)
			}
		})
	}
}

// readOnly returns a copy of an entry in memory that can only be read.
func readOnly(t *testing.T, e table.Entry) table.Entry {
	t.Helper()
	return table.Entry{Words: copyToReadOnly(t, &e.Words[0], len(e.Words)), Layout: e.Layout}
}

// copyToReadOnly returns a copy of values in memory that can only be read, until the end of the test. The caller keeps what
// they refer to.
func copyToReadOnly[T any](t *testing.T, from *T, count int) []T {
	t.Helper()
	page, err := syscall.Mmap(-1, 0, syscall.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(page) })
	copy(page, unsafe.Slice((*byte)(unsafe.Pointer(from)), uintptr(count)*unsafe.Sizeof(*from)))
	if err := syscall.Mprotect(page, syscall.PROT_READ); err != nil {
		t.Fatal(err)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&page[0])), count)
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
