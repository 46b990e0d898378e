package resp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
)

// throttle is the rule of all limits in a call. So a key has one state for all its limits, as in redis-cell.
const throttle = "cl.throttle"

// cellLimit is the limit in a call of CL.THROTTLE.
type cellLimit struct {
	maxBurst, count int64
	period          time.Duration
}

// rule returns the rule of a limit in a call.
func (s *Server) rule(of cellLimit) (*weir.Rule, error) {
	rule, err := s.limits.Of(of, func(of cellLimit) (*weir.Rule, error) {
		return s.Desk.NewRule(throttle, weir.TokenBucket{Rate: weir.Per(of.count, of.period), Burst: of.maxBurst + 1})
	})
	if err != nil {
		return nil, fmt.Errorf("ERR %w", err)
	}
	return rule, nil
}

// cell reads CL.THROTTLE key max_burst count period [quantity]. The texts of errors are those of redis-cell, which its
// clients may know.
func (c *conn) cell(args [][]byte) error {
	if len(args) != 5 && len(args) != 6 {
		return cellError("Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]")
	}
	numbers := [4]int64{3: 1}
	for i, word := range args[2:] {
		n, err := strconv.ParseInt(string(word), 10, 64) // as Rust does for redis-cell: with +1, 01 and -0
		if err != nil {
			return cellError("Couldn't parse as integer: " + clip(word))
		}
		numbers[i] = n
	}
	maxBurst, count, period, quantity := numbers[0], numbers[1], numbers[2], numbers[3]
	if count <= 0 || period <= 0 {
		return cellError("Zero rates are not supported")
	}
	of := cellLimit{maxBurst, count, time.Duration(min(period, math.MaxInt64/int64(time.Second))) * time.Second}
	op := weir.OpTake
	switch {
	case quantity == math.MinInt64:
		return fmt.Errorf("ERR quantity %d: out of bounds", quantity)
	case quantity < 0:
		op, quantity = weir.OpReturn, -quantity
	case quantity == 0:
		op = weir.OpPeek
	}
	return c.throttle(op, args[1], of, quantity)
}

// clip returns the start of a word as the text of an error.
func clip(word []byte) string {
	const most = 32
	if len(word) > most {
		return strings.ToValidUTF8(string(word[:most]), "\ufffd") + "…"
	}
	return strings.ToValidUTF8(string(word), "\ufffd")
}

func cellError(text string) error { return errors.New(cellPrefix + text) }

const cellPrefix = "Cell error: Store error: "

func (c *conn) throttle(op weir.Op, key []byte, of cellLimit, cost int64) error {
	if !c.who.May(auth.Dynamic, "") {
		return c.denied(auth.Dynamic)
	}
	if op == weir.OpReturn && !c.who.May(auth.Refund, "") {
		return c.denied(auth.Refund)
	}
	if of.maxBurst < 0 || of.maxBurst >= weir.MaxCount {
		return fmt.Errorf("ERR max_burst %d: not within 0 and %d", of.maxBurst, int64(weir.MaxCount-1))
	}
	rule, err := c.server.rule(of)
	if err != nil {
		return err
	}
	c.ask(weir.Call{Op: op}, asCell, rule.For(c.text(key), cost))
	return nil
}

// forget serves DEL, and counts the keys that had used units.
func (c *conn) forget(args [][]byte) error {
	if len(args) < 2 {
		return errArity("del")
	}
	if !c.who.May(auth.Dynamic, "") {
		return c.denied(auth.Dynamic)
	}
	if !c.who.May(auth.Refund, "") { // the units may be those of others
		return c.denied(auth.Refund)
	}
	rule, err := c.server.rule(cellLimit{0, 1, time.Second})
	if err != nil {
		return err
	}
	forgotten := int64(0)
	for _, key := range args[1:] {
		q := rule.For(c.text(key), 0)
		used, err := c.used(q)
		if err != nil {
			return err
		}
		if _, err := c.server.Desk.Do(context.Background(), weir.Call{Op: weir.OpReset, Requests: []weir.Request{q}}); err != nil {
			return c.failure(err)
		}
		forgotten += number(used)
	}
	c.out = appendInteger(c.out, forgotten)
	return nil
}
