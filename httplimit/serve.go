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

// serve calls the handler of an admitted request, and ends what was granted when it has returned.
func serve(next http.Handler, g *grant, w http.ResponseWriter, r *http.Request) {
	if g == nil {
		next.ServeHTTP(w, r)
		return
	}
	defer g.End(r.Context()) // also when the handler panics
	answer := &recorder{ResponseWriter: w, grant: g}
	if g.AsksAfter() || g.HoldsSlots() {
		w = answer.wrapped()
	}
	given := r
	if ctx := g.Context(r.Context()); ctx != r.Context() {
		given = r.WithContext(ctx)
	}
	next.ServeHTTP(w, given)
	g.Answered(r.Context(), r, Answer{Status: answer.statusCode(), Bytes: answer.bytes})
}
