package admin

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/weirflow/weir/cmd/weir/internal/decide"
)

// strict refuses what a caller cannot have meant: unknown fields, and null in place of a value. The library itself refuses
// repeated names, names that differ in case, text that is not UTF-8, and text after the document.
var strict = json.JoinOptions(json.RejectUnknownMembers(true), json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, _ any) error {
	if d.PeekKind() == 'n' {
		return errNull
	}
	return errors.ErrUnsupported // the value is read as usual
})))

var errNull = errors.New("it is null")

// read reads the body, strictly, because a misread change would change something else. The body needs the fields named.
func read(r *http.Request, into any, needed ...string) error {
	var body jsontext.Value
	if err := json.UnmarshalRead(r.Body, &body); err != nil {
		return wrong("the body %s", decide.NotJSON(err))
	}
	var fields map[string]jsontext.Value
	if err := json.Unmarshal(body, into, strict); err != nil {
		return wrong("the body %s", misread(err))
	}
	_ = json.Unmarshal(body, &fields) // an object, because it was just read as one
	for _, name := range needed {
		if fields[name] == nil {
			return wrong("the body lacks the field %q", name)
		}
	}
	return nil
}

// wants are the words for the value of a field, by its type in Go.
var wants = map[string]string{"string": "a string", "int64": "a whole number", "bool": "true or false", "time.Time": "a time like 2026-12-01T00:00:00Z"}

// misread says which field of a document is wrong.
func misread(err error) string {
	e, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return "is wrong: " + err.Error()
	}
	name := decide.Quote(e.JSONPointer.LastToken())
	switch {
	case e.JSONPointer == "":
		return "is not an object"
	case errors.Is(err, json.ErrUnknownName):
		return "has the field " + name + ", which this request does not know"
	case errors.Is(err, errNull):
		return "has null as " + name
	}
	value := e.JSONKind.String()
	if e.JSONValue != nil {
		value = decide.Quote(string(e.JSONValue))
	}
	if want := wants[e.GoType.String()]; want != "" {
		return fmt.Sprintf("has %s as %s, want %s", value, name, want)
	}
	return fmt.Sprintf("has %s as %s", value, name)
}
