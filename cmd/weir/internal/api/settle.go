package api

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
)

// The fields of settle and renew.
const (
	fieldToken = "token"
	fieldCosts = "costs"
)

// mostToken bounds the text of a token in a header field. That in a body is as long as the body allows.
const mostToken = 8 << 10

// tokenBody is the body of settle or renew.
type tokenBody struct {
	token string
	costs []int64 // the true costs; nil if the reserved ones were right
	each  bool    // there has to be one for each request
}

// settle ends a reservation: with its true cost, or as it is.
func (a *API) settle(w http.ResponseWriter, r *http.Request, who asker) {
	a.withToken(w, r, true, func(asked tokenBody) ([]byte, error) {
		return []byte("{}\n"), a.desk.Settle(r.Context(), who.Identity, asked.token, asked.each, asked.costs...)
	})
}

// renew gives a reservation its life again, in a new token.
func (a *API) renew(w http.ResponseWriter, r *http.Request, who asker) {
	a.withToken(w, r, false, func(asked tokenBody) ([]byte, error) {
		token, life, err := a.desk.Renew(r.Context(), who.Identity, asked.token)
		answer := append(appendSeconds([]byte(`{"lease":`), life), `,"token":`...)
		return append(appendText(answer, token), "}\n"...), err
	})
}

// withToken reads a body with a token, and answers with the result of do.
func (a *API) withToken(w http.ResponseWriter, r *http.Request, costs bool, do func(tokenBody) ([]byte, error)) {
	c := newCall()
	defer c.free()
	asked, p := a.decodeToken(c, w, r, costs)
	if p != nil {
		writeProblem(w, p)
		return
	}
	answer, err := do(asked)
	if err == nil {
		writeJSON(w, answer)
	} else if d, ok := errors.AsType[*auth.Denied](err); ok {
		writeProblem(w, denied(*d))
	} else if wrong, ok := errors.AsType[*decide.CostsError](err); ok {
		writeProblem(w, badField(fieldCosts, fmt.Sprintf("has length %d, not %d: one for each request", wrong.Costs, wrong.Requests)))
	} else if err == decide.ErrToken || err == decide.ErrLost {
		writeProblem(w, &problem{status: http.StatusNotFound, field: fieldToken, detail: strings.Replace(err.Error(), "the token", fieldToken, 1)})
	} else if err == decide.ErrCrowded {
		writeProblem(w, &problem{status: http.StatusServiceUnavailable, detail: err.Error()})
	} else {
		a.fail(w, r, err)
	}
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
		if len(token) == 0 {
			d.fail(badField(fieldToken, "is empty; /v1/reserve answers with one"))
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
