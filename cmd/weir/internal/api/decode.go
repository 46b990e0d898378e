package api

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// form lists the fields of a path's body besides rules, keys and costs.
type form struct {
	batch       bool           // decisions that stand alone
	negative    bool           // costs below 0
	attributes  bool           // of a request, for rules in files
	patience    *time.Duration // receives the field patience; nil if the path has none
	key         string         // of all requests, from the header; "" if only the body names keys
	reserves    bool           // a cost is an estimate, where the rule makes some
	namesLimits *auth.Identity // whose body may hold limits, with that scope; nil if none may
}

// maxLimit bounds the bytes of the text of a limit.
const maxLimit = 256

// defaultRule is the rule of a request that names none.
const defaultRule = "default"

// decode reads the body into c.requests. It is strict, because a misread request would be admitted wrongly. It
// refuses unknown and repeated fields, text after the document, fractions, and text that is not UTF-8.
func (c *call) decode(force *decide.InForce, f form) *problem {
	c.json.Reset(&c.body)
	d := decoder{reader: reader{call: c}, InForce: force, form: f}
	d.document()
	d.end()
	return d.problem
}

type decoder struct {
	reader
	form
	*decide.InForce
	request rules.Attributes // nil unless the body has attributes
}

// item is one request as the client wrote it.
type item struct {
	rule            *weir.Rule
	name            string // of a rule that does not exist
	limit           string
	key             string
	cost            int64
	hasKey, hasCost bool
}

// document reads one request or a list of requests.
func (d *decoder) document() {
	body := spot{index: -1}
	var single item
	several := false
	d.object(body, func() {
		switch {
		case string(d.text) == fieldRequests, d.batch && string(d.text) == fieldDecisions:
			if several {
				d.fail(badField(fieldDecisions, "excludes "+fieldRequests))
				return
			}
			several, d.apart = true, string(d.text) == fieldDecisions
			d.list(body.of(string(d.text)), d.element)
		case d.form.attributes && d.ByAttributes() && string(d.text) == fieldAttributes:
			d.request = d.attributes(body.of(fieldAttributes))
		case d.patience != nil && string(d.text) == fieldPatience:
			*d.patience = d.seconds(body.of(fieldPatience))
		default:
			d.member(&single, body)
		}
	})
	switch {
	case d.request != nil:
		d.match(single, several)
	case !several:
		d.add(single, body)
	case single != item{}:
		field := fieldRequests
		if d.apart {
			field = fieldDecisions
		}
		d.fail(badField(field, "excludes rule, key and cost"))
	}
}

// match finds the rules that decide a request with attributes.
func (d *decoder) match(single item, several bool) {
	if !single.hasCost {
		single.cost = 1
	}
	if d.form.key != "" {
		d.fail(badField(headerKey, "names a key, and so do the rules that match the attributes; leave it out"))
		return
	}
	if several || single.hasKey || single.rule != nil || single.name != "" || single.limit != "" {
		d.fail(badField(fieldAttributes, "excludes requests, rule and key"))
		return
	}
	d.Config.Decide(d.request, single.cost, &d.outcome)
	d.requests = append(d.requests, d.outcome.Requests...)
}

// maxAttributes bounds the attributes of a request.
const maxAttributes = 128

// attributes reads texts by name.
func (d *decoder) attributes(at spot) rules.Attributes {
	request := rules.Attributes{}
	d.object(at, func() {
		name := rules.AttributeName(string(d.text))
		if kind := d.json.PeekKind(); kind != '"' && kinds[kind] != "" {
			d.fail(badField(fieldAttributes, "has "+kinds[kind]+" as "+decide.Quote(name)+", not a string"))
			return
		}
		if !d.Config.CanRead(name) {
			d.stray = name
		}
		if _, twice := request[name]; twice {
			d.fail(badField(fieldAttributes, "have "+decide.Quote(name)+" twice; names of header fields differ in more than case"))
		}
		request[name] = string(d.string(at))
		if len(request) > maxAttributes {
			d.fail(badField(fieldAttributes, fmt.Sprintf("are more than %d", maxAttributes)))
		}
	})
	return request
}

// element reads one request of a list.
func (d *decoder) element(i int) {
	at := spot{index: i}
	if d.apart {
		at.list = fieldDecisions
	}
	var one item
	d.object(at, func() { d.member(&one, at) })
	d.add(one, at)
}

// add appends an item, completed with defaults.
func (d *decoder) add(it item, at spot) {
	if !it.hasKey {
		it.hasKey, it.key = d.form.key != "", d.form.key
	}
	if !it.hasKey {
		d.fail(badField(at.of(fieldKey).String(), `is missing (the empty key is written "")`))
	}
	if !it.hasCost && !(d.reserves && d.Estimates(it.rule)) {
		it.cost = 1
	}
	switch {
	case it.limit != "":
		it.rule = d.limited(it, at)
	case it.name != "":
		d.fail(badField(at.of(fieldRule).String(), "is "+decide.Quote(it.name)+", and "+d.Unnamed(it.name)))
	case it.rule == nil:
		rule := d.Rule([]byte(defaultRule))
		if rule == nil {
			d.fail(badField(at.of(fieldRule).String(), "is missing, and no rule is named "+strconv.Quote(defaultRule)))
			return
		}
		it.rule = rule
	}
	if d.problem != nil {
		return
	}
	d.requests = append(d.requests, d.For(it.rule, it.key, it.cost))
}

// member reads the value of the field that d.text names.
func (d *decoder) member(it *item, at spot) {
	switch string(d.text) {
	case fieldRule:
		it.rule, it.name = d.rule(at.of(fieldRule))
	case fieldKey:
		it.hasKey, it.key = true, d.key(at.of(fieldKey))
	case fieldCost:
		it.hasCost, it.cost = true, d.cost(at.of(fieldCost))
	default:
		known := []string{fieldRule, fieldKey, fieldCost}
		if d.form.namesLimits != nil {
			if known = append(known, fieldLimit); string(d.text) == fieldLimit {
				it.limit = d.limit(at.of(fieldLimit))
				return
			}
		} else if string(d.text) == fieldLimit {
			d.fail(badField(at.of(fieldLimit).String(), "is in the request, and the daemon lets callers name no limits; weir serve --dynamic does"))
			return
		}
		if string(d.text) == fieldAttributes && d.Config != nil && !d.Config.ByAttributes() {
			d.fail(badField(at.of(fieldAttributes).String(), "are in the request, and the rules are those of envoyproxy/ratelimit, which descriptors find; ask /json or --grpc"))
			return
		}
		if at.index < 0 {
			known = append(known, fieldRequests)
			if d.form.attributes && d.ByAttributes() {
				known = append(known, fieldAttributes)
			}
			if d.patience != nil {
				known = append(known, fieldPatience)
			}
		}
		d.unknown(at, known...)
	}
}

// rule returns the rule of a name. If there is none, it returns the name, in case the body holds its limit, even where
// it may not.
func (d *decoder) rule(at spot) (rule *weir.Rule, unknown string) {
	rule = d.Rule(d.string(at))
	switch {
	case rule != nil:
	case len(d.text) == 0:
		d.fail(badField(at.String(), "is "+decide.Quote(string(d.text))+", and no rule has that name"))
	default:
		unknown = string(d.text)
	}
	return rule, unknown
}

func (d *decoder) limit(at spot) string {
	text := d.string(at)
	if len(text) == 0 || len(text) > maxLimit {
		d.fail(badField(at.String(), fmt.Sprintf("has %d bytes, want 1 to %d", len(text), maxLimit)))
	}
	return string(text)
}

// limited returns the rule of an item with a limit.
func (d *decoder) limited(it item, at spot) *weir.Rule {
	name := it.name
	switch {
	case it.rule != nil:
		name = it.rule.Name()
	case name == "":
		name = defaultRule
	}
	if !d.form.namesLimits.May(auth.Dynamic, name) {
		p := badField(at.of(fieldLimit).String(), "needs the scope dynamic:"+name+", and the caller has "+d.form.namesLimits.String())
		p.status = http.StatusForbidden
		d.fail(p)
		return nil
	}
	rule, err := d.Limited(name, it.limit)
	if wrong, ok := errors.AsType[*weir.RequestError](err); ok {
		d.fail(badField(at.of(wrong.Field).String(), wrong.Reason))
	}
	return rule
}

func (d *decoder) key(at spot) string {
	key := d.string(at)
	if len(key) > weir.MaxKey {
		d.fail(badField(at.String(), fmt.Sprintf("has %d bytes, more than %d", len(key), weir.MaxKey)))
	}
	d.agree(at, string(key), headerKey, d.form.key)
	return string(key)
}

func (d *decoder) cost(at spot) int64 {
	digits := d.value('0', at, "a whole number")
	cost, err := strconv.ParseInt(string(digits), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		d.fail(badField(at.String(), "is "+clip(string(digits))+", above 64 bits"))
	case err != nil:
		d.fail(badField(at.String(), "is "+clip(string(digits))+", not a whole number in plain digits"))
	case cost < 0 && !d.negative:
		d.fail(badField(at.String(), fmt.Sprintf("is %d, below 0; /v1/return gives units back", cost)))
	}
	return cost
}
