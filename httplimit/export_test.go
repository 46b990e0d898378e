package httplimit

import "net/http"

// ForgetMadeInRequest makes the next middleware made within a request log its line again.
func ForgetMadeInRequest() { saidMade.Store(false) }

// IsMarked reports whether any middleware still has a mark for the request.
func IsMarked(r *http.Request) bool {
	_, marked := marks.Load(r.URL)
	return marked
}
