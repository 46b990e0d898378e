package httplimit

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// secondaryWords are in the bodies of GitHub's refusals under its secondary limits. Such a 403 may have no
// Retry-After, and units of the announced quota left.
var secondaryWords = []string{"secondary rate limit", "abuse detection mechanism"}

// maxSecondary bounds what is read of a body to find them.
const maxSecondary = 4 << 10

// isSecondary reports whether an answer of GitHub refuses under a secondary limit. It puts an unread body in place.
func isSecondary(resp *http.Response) bool {
	begun, err := io.ReadAll(io.LimitReader(resp.Body, maxSecondary))
	var rest io.Reader = resp.Body
	if err != nil {
		rest = failing{err}
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(begun), rest), resp.Body}
	text := strings.ToLower(string(begun))
	for _, words := range secondaryWords {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// failing is the rest of a body that could not be read.
type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }
