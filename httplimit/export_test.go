package httplimit

import (
	"net/http"
	"sync"
)

// ForgetMadeInRequest lets the next middleware that is made within a request be
// told of again.
func ForgetMadeInRequest() { saidMade = sync.Once{} }

// IsMarked says that a request is under way as far as anyone remembers.
func IsMarked(r *http.Request) bool {
	_, marked := marks.Load(r.URL)
	return marked
}
