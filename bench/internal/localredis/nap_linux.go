package localredis

import (
	"runtime"
	"syscall"
	"time"
)

// naps makes short sleeps of this goroutine end on time, until awake. The runtime rounds the timers of an idle program
// up to 1 ms, which is ten times the shortest delay of a link and delays a caller more, the fewer others there are. Linux
// adds 50 us of its own.
func naps() (nap func(time.Duration), awake func()) {
	const setTimerSlack = 29 // PR_SET_TIMERSLACK, of this thread, in ns; 0 is the default
	runtime.LockOSThread()
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 1, 0) // refused: sleeps are 50 us longer
	nap = func(d time.Duration) {
		left := syscall.NsecToTimespec(int64(d))
		_ = syscall.Nanosleep(&left, nil)
	}
	return nap, func() {
		_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 0, 0)
		runtime.UnlockOSThread()
	}
}
