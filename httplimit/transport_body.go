package httplimit

import (
	"context"
	"io"
	"net/http"

	"github.com/weirflow/weir/pace"
)

// body is the body of an answer. Its request ends when it is read to its end or closed, or when the context ends.
type body struct {
	io.ReadCloser
	reader io.Reader // of the ReadCloser, at the pace of the bandwidth
	pass   *pass
}

func (b *body) Read(p []byte) (n int, err error) {
	err = io.ErrUnexpectedEOF // if the body panics
	defer func() {
		if err != nil {
			b.pass.end()
		}
	}()
	n, err = b.reader.Read(p)
	return n, err
}

func (b *body) Close() error {
	defer b.pass.end() // also if the body panics
	if b.pass.quit != nil {
		b.pass.quit()
	}
	return b.ReadCloser.Close()
}

// stream is the body of an answer that switches protocols. It can be written, too.
type stream struct {
	*body
	io.Writer
}

// attach makes the body of an answer end its request, and obey the bandwidth.
func attach(bandwidth func(*http.Request) pace.Pacer, r *http.Request, resp *http.Response, p *pass) {
	if resp.Body == http.NoBody {
		p.end()
		return
	}
	b := &body{ReadCloser: resp.Body, reader: resp.Body, pass: p}
	defer p.endWith(r.Context())
	writer, writable := resp.Body.(io.Writer)
	if resp.StatusCode == http.StatusSwitchingProtocols && writable {
		resp.Body = stream{b, writer}
		return
	}
	resp.Body = b
	if bandwidth == nil {
		return
	}
	if pacer := bandwidth(r); pacer != nil {
		var ctx context.Context
		ctx, p.quit = context.WithCancel(r.Context())
		b.reader = pace.Reader(ctx, pace.InFlow(pacer, p.gate.key, 1), b.ReadCloser)
	}
}
