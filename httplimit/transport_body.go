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
	reader io.Reader // reads the ReadCloser, at the pace of the bandwidth
	pass   *pass
	usage  *usageReader // nil if nothing counts tokens
}

func (b *body) Read(p []byte) (n int, err error) {
	err = io.ErrUnexpectedEOF // if the body panics
	defer func() {
		if err != nil {
			b.pass.end()
		}
	}()
	n, err = b.reader.Read(p)
	if b.usage != nil {
		b.usage.read(b.pass, p[:min(max(n, 0), len(p))], err == io.EOF)
	}
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

// attach makes the body of an answer end its request, say what it used, and obey the bandwidth.
func (c *exchange) attach(resp *http.Response, p *pass) {
	if resp.Body == http.NoBody {
		p.end()
		return
	}
	b := &body{ReadCloser: resp.Body, reader: resp.Body, pass: p}
	defer p.endWith(c.request.Context())
	writer, writable := resp.Body.(io.Writer)
	if resp.StatusCode == http.StatusSwitchingProtocols && writable {
		resp.Body = stream{b, writer}
		return
	}
	resp.Body = b
	if c.Tokens != nil {
		b.usage = &usageReader{}
	}
	if c.Bandwidth == nil {
		return
	}
	if pacer := c.Bandwidth(c.request); pacer != nil {
		ctx, quit := context.WithCancel(c.request.Context())
		p.quit = func() {
			if c.request.Context().Err() == nil { // otherwise ctx ends by it, too, and with its reason
				quit()
			}
		}
		b.reader = pace.Reader(ctx, pace.InFlow(pacer, p.gate.key, 1), b.ReadCloser)
	}
}
