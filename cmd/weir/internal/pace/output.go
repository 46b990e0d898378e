package pace

import (
	"bytes"
	"io"
	"sync"

	"github.com/weirflow/weir/cmd/weir/internal/filter"
)

// mostHeld bounds what is held of a stream of a command that runs beside others.
const mostHeld = 1 << 20

// commandOutput is where the commands of weir pace write. It keeps the outputs of commands apart that run at a time, and
// those of any command from the progress on the terminal.
type commandOutput struct {
	out, errs io.Writer
	// held is the number of bytes of a stream that wait for the end of their command. Default: 0, so lines are passed on
	// as they come. Direct lets the commands write themselves.
	held   int
	direct bool

	mu sync.Mutex // held to write
}

// commandStreams are the two streams of one command.
type commandStreams struct{ out, errs io.Writer }

func (o *commandOutput) begin() commandStreams {
	if o.direct {
		return commandStreams{o.out, o.errs}
	}
	return commandStreams{&heldStream{of: o, to: o.out}, &heldStream{of: o, to: o.errs}}
}

// end passes on what is still held of a command that has ended.
func (s commandStreams) end() (err error) {
	for _, w := range []io.Writer{s.out, s.errs} {
		if held, ok := w.(*heldStream); ok {
			held.pass(len(held.text))
			if err == nil && held.failed != nil {
				err = &filter.StreamError{Op: "write", Err: held.failed}
			}
		}
	}
	return err
}

// heldStream passes on whole lines, except of a line longer than mostHeld. The goroutine of one command uses it.
type heldStream struct {
	of     *commandOutput
	to     io.Writer
	text   []byte
	failed error // of to; the rest is dropped
}

// Write never fails, so that a command can end although its output has nowhere to go.
func (s *heldStream) Write(b []byte) (int, error) {
	s.text = append(s.text, b...)
	if len(s.text) > s.of.held {
		whole := bytes.LastIndexByte(s.text, '\n') + 1
		if len(s.text)-whole > mostHeld {
			whole = len(s.text)
		}
		s.pass(whole)
	}
	return len(b), nil
}

// pass writes the first n bytes of what is held.
func (s *heldStream) pass(n int) {
	if n > 0 && s.failed == nil {
		s.of.mu.Lock()
		_, s.failed = s.to.Write(s.text[:n])
		s.of.mu.Unlock()
	}
	s.text = s.text[n:]
}
