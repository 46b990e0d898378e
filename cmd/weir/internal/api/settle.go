package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
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
func (a *API) settle(w http.ResponseWriter, r *http.Request) {
	a.withToken(w, r, true, func(ctx context.Context, asked tokenBody, of *reservation, requests []weir.Request) ([]byte, error) {
		if asked.each && len(asked.costs) != len(requests) {
			return nil, badField(fieldCosts, fmt.Sprintf("has length %d, not %d: one for each request", len(asked.costs), len(requests)))
		}
		return []byte("{}\n"), a.settleOnce(ctx, of, requests, asked.costs)
	})
}

// renew gives a reservation its life again, in a new token.
func (a *API) renew(w http.ResponseWriter, r *http.Request) {
	a.withToken(w, r, false, func(ctx context.Context, _ tokenBody, of *reservation, requests []weir.Request) ([]byte, error) {
		began := time.Now()
		if settled, err := a.settled(ctx, of); settled || err != nil {
			return nil, cmp.Or(err, ErrToken)
		}
		if slots := slotsOf(requests); len(slots) > 0 {
			renewer, ok := weir.Find[enginekit.Renewer](a.engine)
			if !ok {
				return nil, enginekit.Unsupported(weir.OpRecord, "renews no slots on this engine")
			}
			if held, err := renewer.Renew(ctx, weir.Call{Requests: slots, Lease: of.Lease}); err != nil {
				return nil, err
			} else if !held {
				return nil, &problem{status: http.StatusNotFound, field: fieldToken, detail: "the slots of token were lost: they were reset, or their lease has ended; stop the work"}
			}
		}
		of.begin(began)
		secret, err := a.secret(ctx)
		answer := append(appendSeconds([]byte(`{"lease":`), of.Life), `,"token":`...)
		return append(appendText(answer, of.seal(secret)), "}\n"...), err
	})
}

// slotsOf returns the requests for slots alone.
func slotsOf(requests []weir.Request) (slots []weir.Request) {
	for _, q := range requests {
		if alone := enginekit.Held(q.Rule); alone != nil && q.Cost > 0 {
			q.Rule = alone
			slots = append(slots, q)
		}
	}
	return slots
}

// withToken reads a body with a token, and answers with what do returns for its reservation.
func (a *API) withToken(w http.ResponseWriter, r *http.Request, costs bool, do func(context.Context, tokenBody, *reservation, []weir.Request) ([]byte, error)) {
	c := newCall()
	defer c.free()
	asked, p := a.decodeToken(c, w, r, costs)
	if p != nil {
		writeProblem(w, p)
		return
	}
	ctx, cancel := a.withPatience(r.Context())
	defer cancel()
	var answer []byte
	of, requests, err := a.reservationOf(ctx, asked.token)
	if err == nil {
		if p := a.mayAsk(r, requests); p != nil {
			writeProblem(w, p)
			return
		}
		answer, err = do(ctx, asked, of, requests)
	}
	if err == nil {
		writeJSON(w, answer)
	} else if p, ok := errors.AsType[*problem](err); ok {
		writeProblem(w, p)
	} else if errors.Is(err, ErrToken) {
		writeProblem(w, &problem{status: http.StatusNotFound, field: fieldToken, detail: strings.TrimPrefix(err.Error(), "the ")})
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
