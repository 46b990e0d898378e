package api

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/weirflow/weir"
)

// The fields of a request. A body is either one request or the field requests. A form may add fields beside them.
const (
	fieldRule     = "rule"
	fieldKey      = "key"
	fieldCost     = "cost"
	fieldRequests = "requests"
	fieldPatience = "patience"
)

// form is what the body of a path may hold beyond rules, keys and costs.
type form struct {
	negative bool           // costs below 0
	patience *time.Duration // receives the field patience; nil if the path has none
}

// defaultRule is the rule of a request that names none.
const defaultRule = "default"

// decode reads the body into c.requests. It is strict, because a misread request would be admitted wrongly. It
// refuses unknown and repeated fields, text after the document, fractions, and text that is not UTF-8.
func (c *call) decode(rules map[string]*weir.Rule, f form) *problem {
	c.json.Reset(&c.body)
	d := decoder{reader: reader{call: c}, rules: rules, form: f}
	if p := d.document(); p != nil {
		return p
	}
	return d.end()
}

type decoder struct {
	reader
	form
	rules map[string]*weir.Rule
}

// item is one request as the client wrote it.
type item struct {
	rule            *weir.Rule
	key             string
	cost            int64
	hasKey, hasCost bool
}

// document reads one request or a list of requests.
func (d *decoder) document() *problem {
	body := spot{index: -1}
	if p := d.open('{', body); p != nil {
		return p
	}
	var single item
	several := false
	for d.json.PeekKind() != '}' {
		if p := d.string(body); p != nil {
			return p
		}
		var p *problem
		switch {
		case string(d.text) == fieldRequests:
			several = true
			p = d.list()
		case d.patience != nil && string(d.text) == fieldPatience:
			*d.patience, p = d.seconds(body.of(fieldPatience))
		default:
			p = d.member(&single, body)
		}
		if p != nil {
			return p
		}
	}
	if several {
		if single != (item{}) {
			return badField(fieldRequests, "excludes rule, key and cost")
		}
		return d.token()
	}
	if p := d.add(single, body); p != nil {
		return p
	}
	return d.token()
}

// list reads the array of requests.
func (d *decoder) list() *problem {
	if p := d.open('[', spot{index: -1, field: fieldRequests}); p != nil {
		return p
	}
	for i := 0; d.json.PeekKind() != ']'; i++ {
		if i == weir.MaxRequests {
			return badField(fieldRequests, fmt.Sprintf("has more than %d elements", weir.MaxRequests))
		}
		if p := d.element(spot{index: i}); p != nil {
			return p
		}
	}
	if len(d.requests) == 0 {
		return badField(fieldRequests, "is empty")
	}
	return d.token()
}

// element reads one request of a list.
func (d *decoder) element(at spot) *problem {
	if p := d.open('{', at); p != nil {
		return p
	}
	var one item
	for d.json.PeekKind() != '}' {
		if p := d.string(at); p != nil {
			return p
		}
		if p := d.member(&one, at); p != nil {
			return p
		}
	}
	if p := d.add(one, at); p != nil {
		return p
	}
	return d.token()
}

// add appends an item, completed with defaults.
func (d *decoder) add(it item, at spot) *problem {
	if !it.hasKey {
		return badField(at.of(fieldKey).String(), `is missing (the empty key is written "")`)
	}
	if !it.hasCost {
		it.cost = 1
	}
	if it.rule == nil {
		rule, ok := d.rules[defaultRule]
		if !ok {
			return badField(at.of(fieldRule).String(), "is missing, and no rule is named "+strconv.Quote(defaultRule))
		}
		it.rule = rule
	}
	d.requests = append(d.requests, it.rule.For(it.key, it.cost))
	return nil
}

// member reads the value of the field that d.text names.
func (d *decoder) member(it *item, at spot) (p *problem) {
	switch string(d.text) {
	case fieldRule:
		it.rule, p = d.rule(at.of(fieldRule))
	case fieldKey:
		it.hasKey = true
		it.key, p = d.key(at.of(fieldKey))
	case fieldCost:
		it.hasCost = true
		it.cost, p = d.cost(at.of(fieldCost))
	default:
		known := []string{fieldRule, fieldKey, fieldCost}
		if at.index < 0 {
			known = append(known, fieldRequests)
			if d.patience != nil {
				known = append(known, fieldPatience)
			}
		}
		return d.unknown(at, known...)
	}
	return p
}

func (d *decoder) rule(at spot) (*weir.Rule, *problem) {
	if p := d.string(at); p != nil {
		return nil, p
	}
	rule, ok := d.rules[string(d.text)]
	if !ok {
		return nil, badField(at.String(), "is "+quote(string(d.text))+", and no rule has that name")
	}
	return rule, nil
}

func (d *decoder) key(at spot) (string, *problem) {
	if p := d.string(at); p != nil {
		return "", p
	}
	if len(d.text) > weir.MaxKey {
		return "", badField(at.String(), fmt.Sprintf("has %d bytes, more than %d", len(d.text), weir.MaxKey))
	}
	return string(d.text), nil
}

func (d *decoder) cost(at spot) (int64, *problem) {
	if p := d.number(at); p != nil {
		return 0, p
	}
	cost, err := strconv.ParseInt(string(d.text), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, badField(at.String(), "is "+clip(d.text)+", above 64 bits")
	case err != nil:
		return 0, badField(at.String(), "is "+clip(d.text)+", not a whole number in plain digits")
	case cost < 0 && !d.negative:
		return 0, badField(at.String(), fmt.Sprintf("is %d; only record takes a cost below 0", cost))
	}
	return cost, nil
}

func clip(number []byte) string {
	const most = 40
	if len(number) > most {
		return string(number[:most]) + "…"
	}
	return string(number)
}
