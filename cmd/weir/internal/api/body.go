package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
)

// The bounds on the memory of bodies. The largest body holds MaxRequests requests with keys of MaxKey bytes in plain
// text.
const (
	maxBody     = 1 << 20
	smallBody   = 16 << 10
	largeBodies = 32 << 20 // for all bodies above smallBody together
)

// The header fields that may hold the key of all requests, and the token: a proxy can route by a header field, and not
// by a body.
const (
	headerKey   = "Weir-Key"
	headerToken = "Weir-Token"
)

// read decodes the body into the call, or returns what is wrong with it.
func (a *API) read(c *call, w http.ResponseWriter, r *http.Request, who asker, f form) *problem {
	defer a.bodies.release(c)
	if p := a.receive(c, w, r); p != nil {
		return p
	}
	key, p := headerText(r.Header, headerKey, weir.MaxKey)
	if p != nil {
		return p
	}
	c.force = a.desk.InForce()
	if f.key = key; a.Dynamic {
		f.namesLimits = who.Identity
	}
	if p := c.decode(c.force, f); p != nil {
		return p
	}
	if c.stray != "" {
		a.misled.Warn(a.Log, "a request has an attribute that decides nothing, because no rules file knows the name", "attribute", decide.Quote(c.stray))
	}
	return who.mayAsk(c.requests)
}

// receive reads the body into the call. The caller returns its memory to the budget, also after a problem.
func (a *API) receive(c *call, w http.ResponseWriter, r *http.Request) *problem {
	if p := checkHeader(r.Header); p != nil {
		return p
	}
	if r.ContentLength > maxBody {
		return tooLarge()
	}
	if r.ContentLength <= smallBody {
		c.body.Grow(int(max(r.ContentLength, 0)) + bytes.MinRead)
	}
	body := r.Body
	if r.ContentLength <= 0 { // net/http holds the others to their length
		body = http.MaxBytesReader(w, body, maxBody)
	}
	err := a.bodies.receive(c, body)
	if err == errNoRoom {
		return &problem{status: http.StatusServiceUnavailable, detail: "too many large bodies are being read; ask again"}
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge()
	}
	if late(err) {
		w.Header().Set("Connection", "close") // the rest of the body may still come
		return &problem{status: http.StatusRequestTimeout, field: "body", detail: "body did not arrive in time"}
	}
	if err != nil {
		return badField("body", "could not be read to its end")
	}
	return nil
}

// timeout is the error of a read whose deadline has passed.
type timeout interface {
	error
	Timeout() bool
}

// late reports whether the rest of a body has not come. If only the last line of a chunked body is missing, net/http
// hides the timeout behind an error that it does not export.
func late(err error) bool {
	timedOut, ok := errors.AsType[timeout](err)
	return ok && timedOut.Timeout() || err != nil && err.Error() == "http: unexpected EOF reading trailer"
}

func tooLarge() *problem {
	return &problem{status: http.StatusRequestEntityTooLarge, field: "body", detail: fmt.Sprintf("body is larger than %d bytes", maxBody)}
}

// checkHeader refuses a body that is declared as anything other than plain JSON. It accepts a missing declaration and
// the one that curl -d sends.
func checkHeader(h http.Header) *problem {
	if declared := h.Get("Content-Type"); declared != "" && declared != "application/json" {
		kind, _, err := mime.ParseMediaType(declared)
		if err != nil || kind != "application/json" && kind != "application/x-www-form-urlencoded" && !strings.HasSuffix(kind, "+json") {
			return unsupported("Content-Type", declared, "application/json")
		}
	}
	if coding := h.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return unsupported("Content-Encoding", coding, "none")
	}
	return nil
}

func unsupported(header, got, want string) *problem {
	return &problem{
		status: http.StatusUnsupportedMediaType, field: header,
		detail: fmt.Sprintf("%s is %s, want %s", header, decide.Quote(got), want),
	}
}

// headerText returns the text of a header field, and "" without one. It refuses an empty field, because clients that
// fill it from an unset variable would share one key.
func headerText(h http.Header, name string, most int) (string, *problem) {
	values := h[name]
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", badField(name, fmt.Sprintf("occurs %d times", len(values)))
	case values[0] == "":
		return "", badField(name, "is empty; only the body can hold the empty text")
	case len(values[0]) > most:
		return "", badField(name, fmt.Sprintf("has %d bytes, more than %d", len(values[0]), most))
	case !utf8.ValidString(values[0]):
		return "", badField(name, "is not UTF-8")
	}
	return values[0], nil
}

// bodyBudget bounds the memory of all bodies above smallBody. A body pays for memory only when its bytes have filled
// what it has, so a client that announces a large body and sends nothing takes nothing.
type bodyBudget struct{ held atomic.Int64 }

var errNoRoom = errors.New("no memory for a large body")

// receive reads the whole body into the call. It refuses a body instead of waiting for memory, because the client
// that holds the memory may never send another byte.
func (b *bodyBudget) receive(c *call, body io.Reader) error {
	for {
		if c.body.Available() == 0 && !b.grow(c) {
			return errNoRoom
		}
		space := c.body.AvailableBuffer()
		n, err := body.Read(space[:cap(space)])
		c.body.Write(space[:n])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// grow doubles the buffer if it stays small or the budget allows it.
func (b *bodyBudget) grow(c *call) bool {
	more := int64(max(c.body.Cap(), bytes.MinRead))
	if c.body.Cap() >= smallBody {
		if b.held.Add(more) > largeBodies {
			b.held.Add(-more)
			return false
		}
		c.paid += more
	}
	c.body.Grow(int(more))
	return true
}

// release returns the memory of a large body to the budget.
func (b *bodyBudget) release(c *call) {
	if c.paid == 0 {
		return
	}
	b.held.Add(-c.paid)
	c.body, c.json, c.text, c.paid = bytes.Buffer{}, jsontext.Decoder{}, nil, 0
}
