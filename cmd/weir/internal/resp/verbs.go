package resp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
)

// verb serves WEIR.TAKE, PEEK, RECORD and RETURN: rule key [cost], or rule key cost several times.
func verb(op weir.Op, scope auth.Scope) func(*conn, [][]byte) error {
	return func(c *conn, args [][]byte) error {
		var space [4]weir.Request
		requests, err := c.read3(space[:0], args[0], args[1:], scope)
		if err == nil {
			c.ask(weir.Call{Op: op}, asDecision, requests...)
		}
		return err
	}
}

// read3 reads a rule, a key and a cost, or several.
func (c *conn) read3(requests []weir.Request, name []byte, words [][]byte, scope auth.Scope) ([]weir.Request, error) {
	if len(words) != 2 && (len(words) == 0 || len(words)%3 != 0) {
		return nil, errArity(string(name))
	}
	if len(words) > 3*weir.MaxRequests {
		return nil, fmt.Errorf("ERR more than %d requests in a command", weir.MaxRequests)
	}
	for ; len(words) > 0; words = words[min(3, len(words)):] {
		cost := int64(1)
		if len(words) > 2 {
			var ok bool
			if cost, ok = integer(words[2]); !ok || cost < 0 {
				return nil, fmt.Errorf("ERR cost %.32q: not a whole number from 0", words[2])
			}
		}
		force := c.server.Desk.InForce()
		rule := force.Rule(words[0])
		if rule == nil {
			return nil, fmt.Errorf("ERR rule %.64q: %s", words[0], force.Unnamed(string(words[0])))
		}
		requests = append(requests, force.For(rule, c.text(words[1]), cost))
	}
	if refused := decide.May(c.who, scope, requests); refused != nil {
		return nil, noPermission(*refused)
	}
	return requests, nil
}

// denied answers a client that lacks a scope outside of rules.
func (c *conn) denied(scope auth.Scope) error { return noPermission(c.who.Deny(scope, "")) }

func noPermission(d auth.Denied) error { return errors.New("NOPERM " + d.Detail) }

// reset serves WEIR.RESET rule key.
func (c *conn) reset(args [][]byte) error {
	if len(args) != 3 {
		return errArity("weir.reset")
	}
	requests, err := c.read3(nil, args[0], args[1:], auth.Admin)
	if err != nil {
		return err
	}
	used, err := c.used(requests[0])
	if err != nil {
		return err
	}
	if err = c.server.Desk.Reset(context.Background(), c.who, c.net.RemoteAddr().String(), requests...); err != nil {
		return c.failure(err)
	}
	c.out = appendInteger(c.out, number(used))
	return nil
}

// maxWait bounds the milliseconds of a WEIR.WAIT. The daemon has a bound of its own below it.
const maxWait = int64(24 * time.Hour / time.Millisecond)

// wait serves WEIR.WAIT milliseconds rule key [cost] …. It holds back the later commands of its connection, and ends with it.
func (c *conn) wait(args [][]byte) error {
	return c.patiently(args, func(p decide.Patient, requests []weir.Request) error {
		made, err := c.server.Desk.Wait(p, requests)
		if err == nil {
			c.appendDecision(asDecision, made)
		}
		return err
	})
}

// reserve serves WEIR.RESERVE milliseconds rule key [cost] …. It answers with a token, which is empty after a refusal, and the
// decision.
func (c *conn) reserve(args [][]byte) error {
	return c.patiently(args, func(p decide.Patient, requests []weir.Request) error {
		force := c.server.Desk.InForce()
		if len(args) == 4 && force.Estimates(requests[0].Rule) {
			requests[0].Cost = 0 // the client has no estimate
		}
		requests, _ = force.Estimated(requests)
		made, token, _, err := c.server.Desk.Reserve(p, requests)
		if err == nil {
			c.out = appendBulk(appendHead(c.out, '*', 2), token)
			c.appendDecision(asDecision, made)
		}
		return err
	})
}

// patiently asks for requests while the connection stays.
func (c *conn) patiently(args [][]byte, ask func(decide.Patient, []weir.Request) error) error {
	if len(args) < 4 {
		return errArity(string(args[0]))
	}
	patience, ok := integer(args[1])
	if !ok || patience < 0 || patience > maxWait {
		return fmt.Errorf("ERR milliseconds %.32q: not a whole number from 0 to %d", args[1], maxWait)
	}
	requests, err := c.read3(nil, args[0], args[2:], auth.Take)
	if err != nil {
		return err
	}
	if err := c.write(); err != nil { // earlier answers do not wait for this one
		return err
	}
	ctx, cancel := context.WithCancel(c.server.ctx)
	defer cancel()
	end := c.arrives(cancel)
	err = ask(decide.Patient{Client: ctx, Patience: time.Duration(patience) * time.Millisecond}, requests)
	end()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, decide.ErrStopping) || c.server.ctx.Err() != nil:
		return errors.New("UNAVAILABLE the daemon is stopping, and the caller was not admitted")
	case ctx.Err() != nil: // which fails no engine
		return errors.New("UNAVAILABLE the client closed the connection while it waited, and was not admitted")
	case errors.Is(err, decide.ErrSlots):
		return fmt.Errorf("ERR %w", err)
	case errors.Is(err, weir.ErrQueueFull):
		return errors.New("UNAVAILABLE too many callers wait, and nothing was taken; ask again, or raise weir serve --max-waiting")
	}
	return c.failure(err)
}

// settle serves WEIR.SETTLE token [cost …].
func (c *conn) settle(args [][]byte) error {
	if len(args) < 2 {
		return errArity("weir.settle")
	}
	if !c.who.Some(auth.Take) {
		return c.denied(auth.Take)
	}
	var costs []int64
	for _, word := range args[2:] {
		cost, ok := integer(word)
		if !ok || cost < 0 {
			return fmt.Errorf("ERR cost %.32q: not a whole number from 0", word)
		}
		costs = append(costs, cost)
	}
	err := c.server.Desk.Settle(c.server.ctx, c.who, string(args[1]), false, costs...)
	_, number := errors.AsType[*decide.CostsError](err)
	refused, lacks := errors.AsType[*auth.Denied](err)
	switch {
	case lacks:
		return noPermission(*refused)
	case number, err == decide.ErrToken:
		return fmt.Errorf("ERR %w", err)
	case err != nil:
		return c.failure(err)
	}
	return c.ok()
}

// used reports whether a key has used units.
func (c *conn) used(request weir.Request) (used bool, err error) {
	d, err := c.server.Desk.Do(context.Background(), weir.Call{Op: weir.OpPeek, Requests: []weir.Request{request}})
	if err != nil {
		return false, c.failure(err)
	}
	return d.ResetAfter > 0, nil
}
