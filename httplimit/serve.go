package httplimit

import "net/http"

// Failures is a Rule.After that counts only answers with status 400 and above:
// a limit on failed attempts. The units of the other requests come back when
// their handlers return, so requests in flight count too.
func Failures(_ *http.Request, a Answer, taken int64) int64 {
	if a.Status < http.StatusBadRequest {
		return 0
	}
	return taken
}

// serve calls the handler of a request that passes, and ends what was granted when it has returned.
func (h *handler) serve(g *grant, w http.ResponseWriter, r *http.Request) {
	given := r
	if ctx := h.front.Context(r.Context(), g); ctx != r.Context() {
		given = r.WithContext(ctx)
	}
	if g == nil {
		h.next.ServeHTTP(w, given)
		return
	}
	defer g.End(r.Context()) // also when the handler panics
	answer := &recorder{ResponseWriter: w, grant: g}
	if g.AsksAfter() || g.HoldsSlots() {
		w = answer.wrapped()
	}
	h.next.ServeHTTP(w, given)
	g.Answered(r.Context(), r, Answer{Status: answer.statusCode(), Bytes: answer.bytes})
}
