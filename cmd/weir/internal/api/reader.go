package api

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// spot is a place in a request. It becomes text only in a problem.
type spot struct {
	index int    // of an element of the list; -1 outside it
	field string // "" for the object itself
	list  string // that the element is in; "" for requests
}

func (s spot) of(field string) spot { return spot{s.index, field, s.list} }

func (s spot) String() string {
	switch {
	case s.index < 0 && s.field == "":
		return "body"
	case s.index < 0:
		return s.field
	case s.field == "":
		return fmt.Sprintf("%s[%d]", cmp.Or(s.list, fieldRequests), s.index)
	}
	return fmt.Sprintf("%s[%d].%s", cmp.Or(s.list, fieldRequests), s.index, s.field)
}

// reader reads JSON tokens and describes what is wrong with them. After the first problem it reads nothing more.
type reader struct {
	*call
	problem *problem
}

func (r *reader) fail(p *problem) {
	if r.problem == nil {
		r.problem = p
	}
}

// object reads an object. It calls member for each field, whose name is r.text, to read the value.
func (r *reader) object(at spot, member func()) {
	for r.open('{', at); r.more('}'); {
		if r.string(at); r.problem == nil {
			member()
		}
	}
	r.token()
}

// list reads a list of up to MaxRequests elements, and one at least.
func (r *reader) list(at spot, element func(i int)) {
	n := 0
	for r.open('[', at); r.more(']'); n++ {
		if n == weir.MaxRequests {
			r.fail(badField(at.String(), fmt.Sprintf("has more than %d elements", weir.MaxRequests)))
			return
		}
		element(n)
	}
	if n == 0 {
		r.fail(badField(at.String(), "is empty"))
	}
	r.token()
}

// open reads the opening bracket of an object or a list.
func (r *reader) open(bracket jsontext.Kind, at spot) {
	if r.problem != nil || r.json.PeekKind() != bracket {
		r.wrong(at, kinds[bracket])
		return
	}
	r.token()
}

// more reports whether something comes before the closing bracket.
func (r *reader) more(bracket jsontext.Kind) bool {
	return r.problem == nil && r.json.PeekKind() != bracket
}

// token reads the next token. Only its error matters.
func (r *reader) token() {
	if r.problem != nil {
		return
	}
	if _, err := r.json.ReadToken(); err != nil {
		r.fail(notJSON(err))
	}
}

// string reads a string into r.text, and returns it.
func (r *reader) string(at spot) []byte {
	r.text, _ = jsontext.AppendUnquote(r.text[:0], r.value('"', at, kinds['"'])) // a string, because it was just read
	return r.text
}

// value reads the next value if it is of a kind. It is valid until the next read.
func (r *reader) value(want jsontext.Kind, at spot, what string) jsontext.Value {
	if r.problem != nil || r.json.PeekKind() != want {
		r.wrong(at, what)
		return nil
	}
	value, err := r.json.ReadValue()
	if err != nil {
		r.fail(notJSON(err))
	}
	return value
}

// end expects nothing after the document.
func (r *reader) end() {
	if r.problem != nil {
		return
	}
	if _, err := r.json.ReadToken(); err != io.EOF {
		r.fail(badField("body", "continues after the document"))
	}
}

// unknown describes a field that r.text names and that is none of the known ones.
func (r *reader) unknown(at spot, known ...string) {
	r.fail(badField(at.String(), fmt.Sprintf("has the field %s, not one of %s", decide.Quote(string(r.text)), strings.Join(known, ", "))))
}

// agree refuses a text of the body that differs from that of its header field.
func (r *reader) agree(at spot, text, name, header string) {
	if header != "" && text != header {
		r.fail(badField(at.String(), "is "+decide.Quote(text)+", and the header field "+name+" is "+decide.Quote(header)))
	}
}

// seconds reads a number of seconds, with up to nine decimals.
func (r *reader) seconds(at spot) time.Duration {
	text := string(r.value('0', at, "a number of seconds"))
	d, ok := parseSeconds(text)
	if !ok {
		r.fail(badField(at.String(), "is "+clip(text)+", not a number of seconds of 0 or more in plain digits, with at most nine decimals, like 30 or 2.5"))
	}
	return d
}

func clip(number string) string {
	const most = 40
	if len(number) > most {
		return number[:most] + "…"
	}
	return number
}

// parseSeconds is the reverse of appendSeconds.
func parseSeconds(text string) (time.Duration, bool) {
	whole, decimals, _ := strings.Cut(text, ".")
	if len(decimals) > 9 || strings.ContainsAny(text, "eE-") {
		return 0, false
	}
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || seconds > int64(math.MaxInt64/time.Second)-1 {
		return 0, false
	}
	rest, err := strconv.ParseInt((decimals + "000000000")[:9], 10, 64)
	return time.Duration(seconds)*time.Second + time.Duration(rest), err == nil
}

// kinds are the names of the JSON types, by the byte of a jsontext.Kind.
var kinds = [256]string{
	'n': "null", 't': "true", 'f': "false", '"': "a string", '0': "a number", '{': "an object", '[': "a list",
}

// wrong describes the next token, which is of another kind, unless there is a problem before it.
func (r *reader) wrong(at spot, what string) {
	if r.problem != nil {
		return
	}
	if words := kinds[r.json.PeekKind()]; words != "" {
		r.fail(badField(at.String(), "is "+words+", not "+what))
		return
	}
	r.token()
}

// notJSON describes an error of the JSON library.
func notJSON(err error) *problem { return badField("body", decide.NotJSON(err)) }

// call is the memory of one request. Later requests reuse it.
type call struct {
	body     bytes.Buffer
	paid     int64 // from the budget of large bodies
	json     jsontext.Decoder
	text     []byte // the last string, unescaped
	requests []weir.Request
	apart    bool // each request is a decision of its own
	calls    []weir.Call
	results  []weir.Result
	answer   []byte
	force    *decide.InForce
	outcome  rules.Outcome  // of a request that attributes describe
	held     []weir.Request // of a reservation whose units were estimated
	stray    string         // of an attribute that no rule can read
}

var calls = sync.Pool{New: func() any { return new(call) }}

func newCall() *call { return calls.Get().(*call) }

// free returns the call to the pool. It drops a large body, so that a burst of large bodies does not stay in memory.
func (c *call) free() {
	c.body.Reset()
	clear(c.requests) // keep no keys alive
	clear(c.calls)
	clear(c.results)
	c.requests, c.calls, c.results, c.apart = c.requests[:0], c.calls[:0], c.results[:0], false
	c.answer = c.answer[:0]
	c.force, c.outcome, c.stray, c.held = nil, rules.Outcome{}, "", nil
	calls.Put(c)
}

// The fields of a request. A body is either one request or the field requests. A form may add fields beside them.
const (
	fieldRule       = "rule"
	fieldKey        = "key"
	fieldCost       = "cost"
	fieldLimit      = "limit"
	fieldRequests   = "requests"
	fieldDecisions  = "decisions"
	fieldPatience   = "patience"
	fieldAttributes = "attributes"
)
