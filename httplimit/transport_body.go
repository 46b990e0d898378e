package httplimit

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/weirflow/weir/pace"
)

// body is the body of an answer. Its request ends when it is read to its end or closed, or when the context ends.
type body struct {
	io.ReadCloser
	reader io.Reader // of the ReadCloser, at the pace of the bandwidth
	end    *ending
}

// ending ends a request once.
type ending struct {
	pass *pass
	done atomic.Bool
	stop func() bool        // ends the watch on the context; nil without one
	quit context.CancelFunc // ends a wait for bandwidth; nil without one
}

func (e *ending) finish() {
	if e.done.Swap(true) {
		return
	}
	e.pass.end()
	if e.stop != nil {
		e.stop()
	}
	if e.quit != nil {
		e.quit()
	}
}

func (b *body) Read(p []byte) (n int, err error) {
	if n, err = b.reader.Read(p); err != nil {
		b.end.finish()
	}
	return n, err
}

func (b *body) Close() error {
	if b.end.quit != nil {
		b.end.quit()
	}
	err := b.ReadCloser.Close()
	b.end.finish()
	return err
}

// stream is the body of an answer that switches protocols. It can be written, too.
type stream struct {
	*body
	io.Writer
}

// attach makes the body of an answer end its request.
func (t *Transport) attach(r *http.Request, resp *http.Response, p *pass) {
	if resp.Body == nil || resp.Body == http.NoBody {
		p.end()
		return
	}
	e := &ending{pass: p}
	b := &body{ReadCloser: resp.Body, reader: resp.Body, end: e}
	if ctx := r.Context(); ctx.Done() != nil {
		e.stop = context.AfterFunc(ctx, e.finish)
	}
	writer, writable := resp.Body.(io.Writer)
	if resp.StatusCode == http.StatusSwitchingProtocols && writable {
		resp.Body = stream{b, writer}
		return
	}
	t.pace(r, b, p.gate.key)
	resp.Body = b
}

// pace makes a body obey a bandwidth.
func (t *Transport) pace(r *http.Request, b *body, flow string) {
	if t.Bandwidth == nil {
		return
	}
	pacer := t.Bandwidth(r)
	if pacer == nil {
		return
	}
	ctx, quit := context.WithCancel(r.Context())
	b.end.quit = quit
	b.reader = pace.Reader(ctx, pace.InFlow(pacer, flow, 1), b.ReadCloser)
}
