package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
)

// The fields of a token of a key, and their bounds.
const (
	fieldPlan  = "plan"
	fieldLasts = "lasts"

	maxTokenKey = 512 // bytes, so that the token fits in a header
	usualLasts  = 10 * time.Minute
)

// keyTokenBody is the body of a request for a token.
type keyTokenBody struct {
	rule, key, plan string
	hasKey          bool
	lasts           time.Duration
}

// keyToken answers with a token that lets its holder peek at one key.
func (a *API) keyToken(w http.ResponseWriter, r *http.Request, who asker) {
	c := newCall()
	defer c.free()
	asked, p := a.decodeKeyToken(c, w, r)
	if p == nil && !who.May(auth.Read, asked.rule) { // the holder of a token gets no other
		p = denied(who.Deny(auth.Read, asked.rule))
	}
	if p != nil {
		writeProblem(w, p)
		return
	}
	ends := time.Now().Add(asked.lasts)
	token, err := a.desk.KeyToken(r.Context(), auth.KeyToken{Rule: asked.rule, Key: []byte(asked.key), Plan: asked.plan, Ends: ends.UnixMilli()})
	if err != nil {
		a.fail(w, r, err)
		return
	}
	answer := append(appendText([]byte(`{"token":`), token), `,"ends_at":"`...)
	answer = ends.UTC().AppendFormat(answer, time.RFC3339)
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, append(answer, "\"}\n"...))
}

// decodeKeyToken reads the body, and checks it against the rules in force.
func (a *API) decodeKeyToken(c *call, w http.ResponseWriter, r *http.Request) (asked keyTokenBody, p *problem) {
	defer a.bodies.release(c)
	if p := a.receive(c, w, r); p != nil {
		return asked, p
	}
	asked.rule, asked.lasts = defaultRule, usualLasts
	c.json.Reset(&c.body)
	d := decoder{reader: reader{call: c}}
	d.object(spot{index: -1}, func() { d.keyTokenMember(&asked) })
	d.end()
	if d.problem != nil {
		return asked, d.problem
	}
	force := a.desk.InForce()
	switch {
	case force.Rule([]byte(asked.rule)) == nil:
		return asked, badField(fieldRule, "is "+decide.Quote(asked.rule)+", and "+force.Unnamed(asked.rule))
	case !asked.hasKey:
		return asked, badField(fieldKey, "is missing")
	case len(asked.key) > maxTokenKey:
		return asked, badField(fieldKey, fmt.Sprintf("has %d bytes, more than the %d of a token", len(asked.key), maxTokenKey))
	case asked.lasts < time.Second || asked.lasts > auth.LongestKeyToken:
		return asked, badField(fieldLasts, fmt.Sprintf("is not within 1 and %d seconds", auth.LongestKeyToken/time.Second))
	case asked.plan != "" && (force.Config == nil || !force.Config.HasPlan(asked.rule, asked.plan)):
		return asked, badField(fieldPlan, "is "+decide.Quote(asked.plan)+", and the rule has no such plan")
	}
	return asked, nil
}

// keyTokenMember reads the value of the field that d.text names.
func (d *decoder) keyTokenMember(asked *keyTokenBody) {
	switch field := string(d.text); field {
	case fieldRule:
		asked.rule = string(d.string(spot{index: -1, field: field}))
	case fieldKey:
		asked.key, asked.hasKey = string(d.string(spot{index: -1, field: field})), true
	case fieldPlan:
		asked.plan = string(d.string(spot{index: -1, field: field}))
	case fieldLasts:
		asked.lasts = d.seconds(spot{index: -1, field: field})
	default:
		d.unknown(spot{index: -1}, fieldRule, fieldKey, fieldPlan, fieldLasts)
	}
}
