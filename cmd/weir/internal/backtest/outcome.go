package backtest

import (
	"encoding/binary"
	"slices"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// shape is the outcome of a request under a file but for the texts of its keys, so few shapes make many outcomes.
type shape struct {
	fate     fate
	by       int            // the row that refuses or admits without an engine, or -1
	open     bool           // an undecided rule may change the answer
	requests []weir.Request // of one call. Their keys are those of the first outcome: see keyed
	asks     []ask          // the same, by their rows
	links    [][]ask        // of each request what is asked in its place, in order; nil if there is nothing
	beside   []weir.Request
	besides  []ask
	lacks    []lack
	places   []keyPlace // of the keys of all of these
}

type fate uint8

const (
	asked fate = iota // an engine decides
	admitted
	refused
)

// ask is a key of a row.
type ask struct {
	row   int
	key   uint32 // in a shape: its place among the keys of the outcome
	plan  int    // of the row
	after int64  // refusals that begin the ban of the rule; 0 without one
}

// keyPlace is the row of a key, and the place of its text among those of the request.
type keyPlace struct{ row, text int }

// lack is an attribute that a log lacks, and the row of the rule that depends on it.
type lack struct {
	row       int
	attribute string
}

// outcome is the outcome of a request: a shape and its keys.
type outcome struct {
	*shape
	keys []uint32 // by their rows, in the order of the places
}

// ask returns an ask of the shape with the key of the outcome.
func (o *outcome) ask(of ask) ask {
	of.key = o.keys[of.key]
	return of
}

// outcomes are those of a file, each once.
type outcomes struct {
	shapes  []*shape
	byForm  map[string]uint32 // the numbers of shapes
	lists   map[list]uint32   // the numbers of lists of several texts
	kept    []kept            // by number
	byTexts map[uint64]uint32 // the numbers of outcomes, by a shape and a list of texts
	keys    []uint32          // of all outcomes
}

// kept is an outcome that is kept: its shape, and the place of the first of its keys.
type kept struct{ shape, keys uint32 }

// list is a list of texts: the last, and the number of the list before it. One text is the list with its own number.
type list struct{ before, text, texts uint32 }

func newOutcomes() outcomes {
	return outcomes{byForm: map[string]uint32{}, lists: map[list]uint32{}, byTexts: map[uint64]uint32{}}
}

func (all *outcomes) of(number uint32) outcome {
	kept := all.kept[number]
	s := all.shapes[kept.shape]
	return outcome{s, all.keys[kept.keys:][:len(s.places)]}
}

// number returns the number of the outcome of the request that is read.
func (t *try) number() (uint32, error) {
	if t.outcome.Verdict != rules.Ask { // other rules were read before the one that refuses; they count nothing
		t.outcome.Requests, t.outcome.Rules = t.outcome.Requests[:0], t.outcome.Rules[:0]
	}
	if err := t.sign(); err != nil {
		return 0, err
	}
	all := &t.outcomes
	shape, ok := all.byForm[string(t.form)]
	if !ok {
		shape = uint32(len(all.shapes))
		all.byForm[string(t.form)] = shape
		all.shapes = append(all.shapes, t.newShape())
	}
	texts := uint64(shape)<<32 | uint64(all.listOf(t.texts[1:]))
	number, ok := all.byTexts[texts]
	if !ok {
		number = uint32(len(all.kept))
		all.byTexts[texts] = number
		all.kept = append(all.kept, kept{shape, uint32(len(all.keys))})
		for _, p := range t.places {
			all.keys = append(all.keys, t.rows[p.row].keys.of(t.texts[p.text]))
		}
	}
	return number, nil
}

// listOf returns the number of a list of texts, which no other list of as many has.
func (all *outcomes) listOf(texts []uint32) (number uint32) {
	for i, text := range texts {
		if i == 0 {
			number = text
			continue
		}
		of := list{number, text, uint32(i)}
		next, ok := all.lists[of]
		if !ok {
			next = uint32(len(all.lists))
			all.lists[of] = next
		}
		number = next
	}
	return number
}

// sign writes the form of the shape, which differs from that of each other one, and notes the keys and their texts.
func (t *try) sign() error {
	o := &t.outcome
	t.texts, t.places = append(t.texts[:0], 0), t.places[:0]
	s := append(t.form[:0], byte(o.Verdict), byte(len(o.Reason)))
	if o.Rule != nil {
		s = binary.AppendUvarint(s, uint64(t.rowOf[o.Rule])+1)
	}
	t.form = append(s, byte(len(o.Requests)), byte(len(o.Beside)))
	for i := range len(o.Requests) + len(o.Beside) {
		q, row := t.request(i)
		if err := t.signRequest(q, row); err != nil {
			return err
		}
		for q = q.Otherwise; q != nil; q = q.Otherwise {
			t.form = append(t.form, 1)
			if err := t.signRequest(q, t.poolRow(q)); err != nil {
				return err
			}
		}
		t.form = append(t.form, 0)
	}
	for _, u := range o.Undecided {
		t.form = append(binary.AppendUvarint(t.form, uint64(t.rowOf[u.Rule])), u.Attribute...)
		t.form = append(t.form, 0)
	}
	return nil
}

// signRequest writes the form of a request that belongs to a row, and notes its key.
func (t *try) signRequest(q *weir.Request, row int) error {
	text, err := t.textOf(q.Key)
	if err != nil {
		return err
	}
	for _, n := range [...]uint64{uint64(row), uint64(text), uint64(t.limitOf(q.Rule).number), uint64(q.Cost)} {
		t.form = binary.AppendUvarint(t.form, n)
	}
	t.places = append(t.places, keyPlace{row, text})
	return nil
}

// textOf returns the place of a key among the texts.
func (t *try) textOf(key string) (int, error) {
	name, err := uint32(0), error(nil)
	if key != "" {
		name, err = t.names.ofKey(key)
	}
	at := slices.Index(t.texts, name)
	if at < 0 {
		at = len(t.texts)
		t.texts = append(t.texts, name)
	}
	return at, err
}

// newShape returns the shape of the request that is read. It takes the requests in the order of sign.
func (t *try) newShape() *shape {
	o := &t.outcome
	s := &shape{by: -1, requests: slices.Clone(o.Requests), beside: slices.Clone(o.Beside), open: o.Open(), places: slices.Clone(t.places)}
	key := uint32(0)
	next := func(q *weir.Request, row int) ask {
		key++
		return ask{row, key - 1, t.rows[row].planOf(q.Rule), t.limitOf(q.Rule).after}
	}
	links, linked := make([][]ask, len(o.Requests)+len(o.Beside)), false
	for i := range links {
		q, row := t.request(i)
		s.asks = append(s.asks, next(q, row))
		for q = q.Otherwise; q != nil; q = q.Otherwise {
			links[i], linked = append(links[i], next(q, t.poolRow(q))), true
		}
	}
	s.asks, s.besides = s.asks[:len(o.Requests):len(o.Requests)], s.asks[len(o.Requests):]
	if linked {
		s.links = links[:len(o.Requests)]
	}
	s.by, s.fate = t.bySelf(), [...]fate{rules.Ask: asked, rules.Allow: admitted, rules.Refuse: refused}[o.Verdict]
	for _, u := range o.Undecided {
		s.lacks = append(s.lacks, lack{t.rowOf[u.Rule], u.Attribute})
	}
	return s
}

// bySelf returns the row that refuses or admits the request that is read without an engine, or -1.
func (t *try) bySelf() int {
	switch o := &t.outcome; {
	case o.Rule != nil:
		return t.rowOf[o.Rule]
	case o.Verdict == rules.Allow && o.Reason == rules.ByDefault:
		return len(t.rows) - 3
	case o.Verdict == rules.Refuse && o.Reason == rules.ByDefault:
		return len(t.rows) - 2
	case o.Verdict == rules.Refuse:
		return len(t.rows) - 1
	}
	return -1
}

// keyed returns a request of the shape with the key of the outcome, which belongs to a row, and so what is asked in its place.
func (t *try) keyed(o *outcome, q weir.Request, of ask, links []ask) weir.Request {
	q.Key = t.rows[of.row].keys.text(o.keys[of.key])
	if len(links) > 0 {
		other := t.keyed(o, *q.Otherwise, links[0], links[1:])
		q.Otherwise = &other
	}
	return q
}

// call returns the requests of the call of an outcome, until the next one.
func (t *try) call(o *outcome) []weir.Request {
	t.asked = t.asked[:0]
	for i, of := range o.asks {
		var links []ask
		if o.links != nil {
			links = o.links[i]
		}
		t.asked = append(t.asked, t.keyed(o, o.requests[i], of, links))
	}
	return t.asked
}
