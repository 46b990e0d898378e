package auth

import (
	"fmt"
	"mime"
	"net/http"
)

// RequestHeader is the field that a write on the admin port needs, with any value. A page of another site cannot send it: a
// browser would ask first, and the daemon never agrees.
const RequestHeader = "Weir-Request"

// headers are those of every answer on the admin port. A page of the daemon widens the policy for its own files.
var headers = map[string]string{
	"Content-Security-Policy":      "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	"X-Frame-Options":              "DENY",
	"X-Content-Type-Options":       "nosniff",
	"Cache-Control":                "no-store",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
}

// Shield serves a port that a browser may reach, directly or through a tunnel to a socket. It answers only the Hosts of
// the port. Pages of other sites cannot read from it, write to it, or show it in a frame. A write needs JSON,
// and the RequestHeader.
func Shield(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		if d := barred(r, origin); d != nil {
			Refuse(w, *d)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// barred returns the reason to refuse a request of any sender, or nil.
func barred(r *http.Request, origin *http.CrossOriginProtection) *Denied {
	switch {
	case !Serves(r):
		return unknownHost(r)
	case origin.Check(r) != nil || fromElsewhere(r, origin):
		return &Denied{http.StatusForbidden, "requests from pages of another origin are refused"}
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &Denied{http.StatusUnsupportedMediaType, "a write on the admin port is JSON, and says so: with curl, add -H 'Content-Type: application/json' -H '" + RequestHeader + ": curl'"}
	}
	if r.Header.Get(RequestHeader) == "" {
		return &Denied{http.StatusForbidden, "a write on the admin port needs the header field " + RequestHeader + ", with any value, which no page of another site can send: with curl, add -H '" + RequestHeader + ": curl'"}
	}
	return nil
}

// fromElsewhere reports whether a page of another origin asks, in a frame or for a part of itself. A user who follows a
// link may come. Without the fields of newer browsers, the Origin of a read is checked like that of a write.
func fromElsewhere(r *http.Request, origin *http.CrossOriginProtection) bool {
	h := r.Header
	switch h.Get("Sec-Fetch-Site") {
	case "":
		write := *r
		write.Method = http.MethodPost
		return origin.Check(&write) != nil
	case "same-origin", "none":
		return false
	}
	return h.Get("Sec-Fetch-Mode") != "navigate" || h.Get("Sec-Fetch-Dest") != "document"
}

func unknownHost(r *http.Request) *Denied {
	return &Denied{http.StatusMisdirectedRequest, fmt.Sprintf("Host %.80q is unknown; weir serve --host NAME adds one", r.Host)}
}
