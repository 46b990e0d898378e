package api

import (
	"net/http"
	"strconv"

	"github.com/weirflow/weir"
)

// problem is an error in the form of RFC 9457. The field names the faulty part of the request: "requests[1].cost",
// "body", a header, or nothing.
type problem struct {
	status int
	field  string
	detail string
	// failed is the error of the engine. It says whether the cost was counted; without an engine's error nothing was.
	failed error
}

// badField returns the problem of a faulty field.
func badField(field, reason string) *problem {
	return &problem{status: http.StatusBadRequest, field: field, detail: field + " " + reason}
}

func writeProblem(w http.ResponseWriter, p *problem) {
	b := append([]byte(nil), `{"type":"about:blank","title":`...)
	b = appendText(b, http.StatusText(p.status))
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(p.status), 10)
	b = append(b, `,"counted":`...)
	b = appendText(b, weir.WasCounted(p.failed).String())
	b = append(b, `,"detail":`...)
	b = appendText(b, p.detail)
	if p.field != "" {
		b = append(b, `,"field":`...)
		b = appendText(b, p.field)
	}
	if p.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.Header()["Content-Type"] = typeProblem
	w.WriteHeader(p.status)
	_, _ = w.Write(append(b, "}\n"...))
}

// quote quotes a text of the client and truncates it.
func quote(s string) string {
	const most = 64
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}
