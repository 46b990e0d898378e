package api

import (
	"cmp"
	"net/http"
	"strconv"
)

// problem is an error as RFC 9457 writes it. The field names the part of the
// request that is wrong: "requests[1].cost", "body", a header, or nothing.
type problem struct {
	status  int
	field   string
	detail  string
	counted counted
}

// counted says whether the cost of a request without an answer was counted. Most
// problems are found before the engine is asked.
type counted string

const (
	notCounted   counted = ""
	maybeCounted counted = "unknown" // also if only some of several requests were
)

// badField is the problem of a request that says something wrong.
func badField(field, reason string) *problem {
	return &problem{status: http.StatusBadRequest, field: field, detail: field + " " + reason}
}

func writeProblem(w http.ResponseWriter, p *problem) {
	b := append([]byte(nil), `{"type":"about:blank","title":`...)
	b = appendText(b, http.StatusText(p.status))
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(p.status), 10)
	b = append(b, `,"counted":`...)
	b = appendText(b, string(cmp.Or(p.counted, "no")))
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

// quote shows a text of the client, but never much of it.
func quote(s string) string {
	const most = 64
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}
