package api

import (
	"bytes"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weirflow/weir"
)

// call is the memory of one request. Later requests reuse it.
type call struct {
	body     bytes.Buffer
	paid     int64 // from the budget of large bodies
	json     jsontext.Decoder
	text     []byte // the last string, unescaped
	requests []weir.Request
	answer   []byte
}

var calls = sync.Pool{New: func() any { return new(call) }}

func newCall() *call { return calls.Get().(*call) }

// free returns the call to the pool. It drops a large body, so that a burst of large bodies does not stay in memory.
func (c *call) free() {
	c.body.Reset()
	c.json.Reset(&c.body)
	clear(c.requests) // keep no keys alive
	c.requests = c.requests[:0]
	c.answer = c.answer[:0]
	calls.Put(c)
}
