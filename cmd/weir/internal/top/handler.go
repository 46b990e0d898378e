package top

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// The number of keys in an answer: the default and the maximum.
const (
	usualKeys = 10
	mostKeys  = 1000
)

var bys = map[string]By{"": Taken, "taken": Taken, "refused": Refused}

// byUsed lists the fullest keys.
const byUsed = "used"

// ServeHTTP answers GET /v1/top?rule=NAME&by=taken|refused|used&n=10 with {"keys":[…]}, the largest count or the fullest first.
// Without rule, the keys are those of all rules.
func (k *Keys) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		refuse(w, "the query is not URL-encoded")
		return
	}
	for name, values := range query {
		if name != "rule" && name != "by" && name != "n" || len(values) > 1 {
			refuse(w, fmt.Sprintf("the query has the field %.64q, want rule, by and n, each once at most", name))
			return
		}
	}
	by, known := bys[query.Get("by")]
	if !known && query.Get("by") != byUsed {
		refuse(w, fmt.Sprintf("by is %.64q, want taken, refused or used", query.Get("by")))
		return
	}
	n := usualKeys
	if text := query.Get("n"); text != "" {
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > mostKeys {
			refuse(w, fmt.Sprintf("n is %.64q, want a whole number from 1 to %d", text, mostKeys))
			return
		}
	}
	var keys any = k.Fullest(query.Get("rule"), n)
	if known {
		keys = k.Top(query.Get("rule"), by, n)
	}
	answer(w, http.StatusOK, "application/json", map[string]any{"keys": keys})
}

func refuse(w http.ResponseWriter, detail string) {
	answer(w, http.StatusBadRequest, "application/problem+json",
		map[string]any{"type": "about:blank", "title": http.StatusText(http.StatusBadRequest), "status": http.StatusBadRequest, "detail": detail})
}

func answer(w http.ResponseWriter, status int, mediaType string, value any) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}
