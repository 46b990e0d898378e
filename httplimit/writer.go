package httplimit

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

// recorder passes an answer on and remembers its status and length. See wrapped for
// its abilities.
type recorder struct {
	http.ResponseWriter
	status   int
	bytes    int64
	hijacked atomic.Bool
	grant    *grant // which a hijacked connection keeps
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader passes a status on. Informational statuses come before the answer.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write passes a part of the body on.
func (w *recorder) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.wrote(int64(n))
	return n, err
}

// WriteString is Write without a copy.
func (w *recorder) WriteString(s string) (int, error) {
	n, err := io.WriteString(w.ResponseWriter, s)
	w.wrote(int64(n))
	return n, err
}

func (w *recorder) wrote(n int64) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.bytes += n
}

// statusCode returns the status of the answer, even if the handler wrote nothing.
func (w *recorder) statusCode() int {
	switch {
	case w.status != 0:
		return w.status
	case w.hijacked.Load():
		return http.StatusSwitchingProtocols
	}
	return http.StatusOK
}

func (w *recorder) flush() error {
	w.wrote(0)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *recorder) hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffer, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.hijacked.Store(true)
	if !w.grant.HoldsSlots() {
		return conn, buffer, nil
	}
	return newHeldConn(conn, w.grant.Outlive()), buffer, nil
}

func (w *recorder) readFrom(r io.Reader) (int64, error) {
	n, err := w.ResponseWriter.(io.ReaderFrom).ReadFrom(r)
	w.wrote(n)
	return n, err
}

// wrapped returns the recorder with the abilities of the writer below it, for callers that ask by type assertion. It
// covers the abilities of net/http's HTTP/1 and HTTP/2 writers, and those that other middlewares keep of them.
func (w *recorder) wrapped() http.ResponseWriter {
	_, flushes := below[http.Flusher](w.ResponseWriter)
	_, hijacks := below[http.Hijacker](w.ResponseWriter)
	_, reads := w.ResponseWriter.(io.ReaderFrom)
	_, pushes := w.ResponseWriter.(http.Pusher)
	switch {
	case flushes && hijacks && reads:
		return http1Writer{hijackWriter{flushWriter{w}}}
	case flushes && hijacks:
		return hijackWriter{flushWriter{w}}
	case flushes && pushes:
		return http2Writer{flushWriter{w}}
	case flushes:
		return flushWriter{w}
	case hijacks:
		return onlyHijackWriter{w}
	}
	return w
}

// below finds an ability of the writers below, as http.ResponseController does.
func below[T any](w http.ResponseWriter) (able T, ok bool) {
	for {
		if able, ok = w.(T); ok {
			return able, true
		}
		u, wraps := w.(interface{ Unwrap() http.ResponseWriter })
		if !wraps {
			return able, false
		}
		w = u.Unwrap()
	}
}

type flushWriter struct{ *recorder }

func (w flushWriter) Flush()            { _ = w.flush() }
func (w flushWriter) FlushError() error { return w.flush() }

type onlyHijackWriter struct{ *recorder }

func (w onlyHijackWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }

type hijackWriter struct{ flushWriter }

func (w hijackWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }

type http1Writer struct{ hijackWriter }

func (w http1Writer) ReadFrom(r io.Reader) (int64, error) { return w.readFrom(r) }

type http2Writer struct{ flushWriter }

func (w http2Writer) Push(target string, o *http.PushOptions) error {
	return w.ResponseWriter.(http.Pusher).Push(target, o)
}
