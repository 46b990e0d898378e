package decide

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// NotJSON says what is wrong with a document that the JSON library cannot read.
func NotJSON(err error) string {
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case err == io.EOF:
		return "is empty"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "ends before the document does"
	case errors.Is(err, jsontext.ErrDuplicateName):
		return "has the field " + Quote(syntax.JSONPointer.LastToken()) + " twice"
	case ok:
		return fmt.Sprintf("is not JSON at byte %d: %s", syntax.ByteOffset+1, strings.ToValidUTF8(syntax.Err.Error(), "\ufffd"))
	}
	return "is not JSON: " + err.Error()
}
