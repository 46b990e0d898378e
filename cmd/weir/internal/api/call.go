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
	paid     int64 // of the memory of large bodies
	json     jsontext.Decoder
	text     []byte // the last string read, unescaped
	requests []weir.Request
	answer   []byte
}

var calls = sync.Pool{New: func() any { return new(call) }}

func newCall() *call { return calls.Get().(*call) }

// free gives the memory back. That of a large body was released before: a burst
// of those should not stay in memory.
func (c *call) free() {
	c.body.Reset()
	c.json.Reset(&c.body)
	clear(c.requests) // keep no keys alive
	c.requests = c.requests[:0]
	c.answer = c.answer[:0]
	calls.Put(c)
}
