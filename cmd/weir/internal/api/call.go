package api

import (
	"bytes"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weirflow/weir"
)

// call is the memory of one request, used again by later ones.
type call struct {
	body     bytes.Buffer
	json     jsontext.Decoder
	text     []byte // the last string read, unescaped
	requests []weir.Request
	answer   []byte
}

var calls = sync.Pool{New: func() any { return new(call) }}

func newCall() *call { return calls.Get().(*call) }

// free gives the memory back, unless a large body made it large: a burst of
// those should not stay in memory.
func (c *call) free() {
	if c.body.Cap() > smallBody+bytes.MinRead || cap(c.text) > smallBody {
		return
	}
	c.body.Reset()
	c.json.Reset(&c.body)
	clear(c.requests) // keep no keys alive
	c.requests = c.requests[:0]
	c.answer = c.answer[:0]
	calls.Put(c)
}
