package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/weirflow/weir"
)

// The fields of settle and renew.
const (
	fieldToken = "token"
	fieldCosts = "costs"
)

// mostToken bounds the text of a token. Those of this daemon have 26 letters.
const mostToken = 64

// tokenBody is the body of settle or renew.
type tokenBody struct {
	token string
	costs []int64 // the true costs; nil if the reserved ones were right
	each  bool    // there has to be one for each request
}

// settle ends a reservation: with its true cost, or as it is.
func (a *API) settle(w http.ResponseWriter, r *http.Request) {
	asked, h := a.readToken(w, r, true)
	if h == nil {
		return
	}
	if asked.each && len(asked.costs) != h.requests {
		writeProblem(w, badField(fieldCosts, fmt.Sprintf("has length %d, not %d: one for each request", len(asked.costs), h.requests)))
		return
	}
	switch err := a.Settle(r.Context(), asked.token, asked.costs...); {
	case err == ErrToken:
		writeProblem(w, unknownToken())
	case err != nil:
		a.fail(w, r, err)
	default:
		a.health.succeeded()
		writeJSON(w, []byte("{}\n"))
	}
}

// renew gives a token its life again.
func (a *API) renew(w http.ResponseWriter, r *http.Request) {
	asked, h := a.readToken(w, r, false)
	if h == nil {
		return
	}
	h.turn.Lock()
	defer h.turn.Unlock()
	if !a.waits.tokens.renewable(asked.token, h) {
		writeProblem(w, unknownToken())
		return
	}
	if a.waits.tokens.lost(h) {
		a.waits.tokens.end(asked.token)
		writeProblem(w, &problem{status: http.StatusNotFound, field: fieldToken, detail: "the slots of token were lost: they were reset, or the engine could not renew them in time; stop the work"})
		return
	}
	began := time.Now()
	ctx, cancel := a.withPatience(r.Context())
	defer cancel()
	if err := a.renewSlots(ctx, h.slots); err != nil {
		a.fail(w, r, err)
		return
	}
	if !a.waits.tokens.extend(asked.token, began) {
		writeProblem(w, unknownToken())
		return
	}
	writeJSON(w, append(appendSeconds([]byte(`{"lease":`), h.life), "}\n"...))
}

// renewSlots replaces slots by new ones of the same identity. An engine that renews slots itself needs no help.
func (a *API) renewSlots(ctx context.Context, slots weir.Call) error {
	if _, renews := weir.Find[weir.Holder](a.engine); renews || len(slots.Requests) == 0 {
		return nil
	}
	if _, err := a.engine.Do(ctx, slots); err != nil {
		return err
	}
	slots.Op = weir.OpReturn
	_, err := a.engine.Do(context.WithoutCancel(ctx), slots) // of one identity those go that expire first
	return err
}

func unknownToken() *problem {
	return &problem{status: http.StatusNotFound, field: fieldToken,
		detail: "token is unknown: it was settled, or has expired, or another daemon gave it; nothing was changed"}
}

// readToken reads a body with a token and finds its reservation. If there is none, it has answered.
func (a *API) readToken(w http.ResponseWriter, r *http.Request, withCosts bool) (tokenBody, *held) {
	c := newCall()
	defer c.free()
	asked, p := a.decodeToken(c, w, r, withCosts)
	if p != nil {
		writeProblem(w, p)
		return asked, nil
	}
	h := a.waits.tokens.find(asked.token)
	if h == nil {
		writeProblem(w, unknownToken())
	}
	return asked, h
}

func (a *API) decodeToken(c *call, w http.ResponseWriter, r *http.Request, withCosts bool) (asked tokenBody, p *problem) {
	defer a.bodies.release(c)
	if p := a.receive(c, w, r); p != nil {
		return asked, p
	}
	header, p := headerText(r.Header, headerToken, mostToken)
	if p != nil {
		return asked, p
	}
	c.json.Reset(&c.body)
	d := decoder{reader: reader{call: c}}
	d.object(spot{index: -1}, func() { d.tokenMember(&asked, withCosts) })
	if asked.token == "" {
		asked.token = header
	}
	d.agree(spot{index: -1, field: fieldToken}, asked.token, headerToken, header)
	if asked.token == "" {
		d.fail(badField(fieldToken, "is missing; /v1/reserve answers with one"))
	}
	d.end()
	return asked, d.problem
}

// tokenMember reads the value of the field that d.text names.
func (d *decoder) tokenMember(asked *tokenBody, withCosts bool) {
	field := string(d.text)
	at := spot{index: -1, field: field}
	switch {
	case field == fieldToken:
		token := d.string(at)
		if len(token) == 0 || len(token) > mostToken {
			d.fail(badField(fieldToken, fmt.Sprintf("has %d bytes, and tokens have 1 to %d", len(token), mostToken)))
		}
		asked.token = string(token)
	case !withCosts:
		d.unknown(spot{index: -1}, fieldToken)
	case (field == fieldCost || field == fieldCosts) && asked.costs != nil:
		d.fail(badField(fieldCosts, "excludes cost"))
	case field == fieldCost:
		asked.costs = []int64{d.cost(at)}
	case field == fieldCosts:
		asked.each = true
		d.list(at, func(int) { asked.costs = append(asked.costs, d.cost(at)) })
	default:
		d.unknown(spot{index: -1}, fieldToken, fieldCost, fieldCosts)
	}
}
