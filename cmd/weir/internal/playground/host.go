package playground

import "io"

// Host holds what the page lends to an answer. The zero Host lends nothing.
type Host struct {
	// Log is the log that someone has dropped, and Size its size in bytes.
	Log  io.Reader
	Size int64
	// Progress, if not nil, gets the progress of an answer from time to time.
	Progress func(stage string, done, of int64)
}

// tell returns a function that reports the progress of a stage, or nil.
func (h Host) tell(stage string) func(done, of int64) {
	if h.Progress == nil {
		return nil
	}
	return func(done, of int64) { h.Progress(stage, done, of) }
}
