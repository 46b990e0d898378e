package api

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// spot is a place in a request. It becomes text only in a problem.
type spot struct {
	index int    // of an element of the list; -1 outside it
	field string // "" for the object itself
}

func (s spot) of(field string) spot { return spot{s.index, field} }

func (s spot) String() string {
	switch {
	case s.index < 0 && s.field == "":
		return "body"
	case s.index < 0:
		return s.field
	case s.field == "":
		return fmt.Sprintf("%s[%d]", fieldRequests, s.index)
	}
	return fmt.Sprintf("%s[%d].%s", fieldRequests, s.index, s.field)
}

// reader reads JSON tokens and describes what is wrong with them.
type reader struct{ *call }

// open reads the opening bracket of an object or a list.
func (r *reader) open(bracket jsontext.Kind, at spot) *problem {
	if p := r.expect(bracket, at, kinds[bracket]); p != nil {
		return p
	}
	return r.token()
}

// token reads the next token. Only its error matters.
func (r *reader) token() *problem {
	if _, err := r.json.ReadToken(); err != nil {
		return notJSON(err)
	}
	return nil
}

// string reads a string into r.text.
func (r *reader) string(at spot) *problem {
	if p := r.expect('"', at, kinds['"']); p != nil {
		return p
	}
	raw, err := r.json.ReadValue()
	if err != nil {
		return notJSON(err)
	}
	r.text, _ = jsontext.AppendUnquote(r.text[:0], raw) // raw is a valid string, because it was just read
	return nil
}

// number reads the digits of a number into r.text.
func (r *reader) number(at spot) *problem {
	if p := r.expect('0', at, "a whole number"); p != nil {
		return p
	}
	raw, err := r.json.ReadValue()
	if err != nil {
		return notJSON(err)
	}
	r.text = append(r.text[:0], raw...)
	return nil
}

// end expects nothing after the document.
func (r *reader) end() *problem {
	if _, err := r.json.ReadToken(); err != io.EOF {
		return badField("body", "continues after the document")
	}
	return nil
}

// unknown describes a field that r.text names and that is none of the known ones.
func (r *reader) unknown(at spot, known ...string) *problem {
	return badField(at.String(), fmt.Sprintf("has the field %s, not one of %s", quote(string(r.text)), strings.Join(known, ", ")))
}

// seconds reads a number of seconds, with up to nine decimals.
func (r *reader) seconds(at spot) (time.Duration, *problem) {
	if p := r.expect('0', at, "a number of seconds"); p != nil {
		return 0, p
	}
	raw, err := r.json.ReadValue()
	if err != nil {
		return 0, notJSON(err)
	}
	d, ok := parseSeconds(string(raw))
	if !ok {
		return 0, badField(at.String(), "is "+clip(raw)+", not a number of seconds of 0 or more in plain digits, with at most nine decimals, like 30 or 2.5")
	}
	return d, nil
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

// kinds are the names of the JSON types.
var kinds = map[jsontext.Kind]string{
	'n': "null", 't': "true", 'f': "false", '"': "a string", '0': "a number", '{': "an object", '[': "a list",
}

// expect checks the next token without reading it.
func (r *reader) expect(want jsontext.Kind, at spot, what string) *problem {
	got := r.json.PeekKind()
	if got == want {
		return nil
	}
	if words, ok := kinds[got]; ok {
		return badField(at.String(), "is "+words+", not "+what)
	}
	_, err := r.json.ReadToken()
	return notJSON(err)
}

// notJSON describes an error of the JSON library.
func notJSON(err error) *problem {
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case err == io.EOF:
		return badField("body", "is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return badField("body", "ends before the document does")
	case errors.Is(err, jsontext.ErrDuplicateName):
		return badField("body", "has the field "+quote(syntax.JSONPointer.LastToken())+" twice")
	case ok:
		return badField("body", fmt.Sprintf("is not JSON at byte %d: %s", syntax.ByteOffset+1, strings.ToValidUTF8(syntax.Err.Error(), "\ufffd")))
	}
	return badField("body", "is not JSON: "+err.Error())
}
