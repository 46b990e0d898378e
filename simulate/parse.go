package simulate

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/weirflow/weir"
)

// parser reads the time and the key of a line in any format. It allocates nothing for usual lines.
type parser struct {
	fields   []field
	first    column   // the first field that the key needs of a combined line
	last     column   // the last one
	missing  []string // per field: the reason to reject a line without it
	combined combined
	json     jsonLine
	timeAt   []int   // the slots of the JSON fields that may hold the time
	fieldAt  [][]int // for each field, the slots of its sources
	key      []byte
	client   []byte // of a JSON line

	costAt []int // the slot of the JSON field that holds the cost; empty: each cost is 1
	isJSON bool  // the last line
}

// timeNames are the JSON fields that may hold the time. Names that may also mean a duration come last.
var timeNames = []string{"timestamp", "@timestamp", "time_iso8601", "time_local", "msec", "ts", "time"}

func newParser(key Key) parser {
	p := parser{fields: key.fields, first: columnAgent}
	for _, name := range timeNames {
		p.timeAt = append(p.timeAt, p.json.want(name))
	}
	for _, f := range key.fields {
		p.first, p.last = min(p.first, f.column), max(p.last, f.column)
		p.missing = append(p.missing, fmt.Sprintf(whyNoField, f.name))
		var slots []int
		for _, source := range f.sources {
			slots = append(slots, p.json.want(source.name))
		}
		p.fieldAt = append(p.fieldAt, slots)
	}
	return p
}

// parse reads a line, or returns the reason it cannot. The key is valid until the next call.
func (p *parser) parse(line []byte, long bool) (t int64, key []byte, why string) {
	if long || len(line) > maxLine {
		return 0, nil, whyLong
	}
	trimmed := bytes.TrimLeft(line, " \t")
	switch {
	case len(trimmed) == 0:
		return 0, nil, whyBlank
	case trimmed[0] == '{':
		p.isJSON = true
		t, key, why = p.parseJSON(trimmed)
	default:
		p.isJSON = false
		t, key, why = p.parseCombined(trimmed)
	}
	if why == "" && len(key) > weir.MaxKey {
		return 0, nil, whyLongKey
	}
	return t, key, why
}

func (p *parser) parseCombined(line []byte) (t int64, key []byte, why string) {
	t, why = p.combined.parse(line, p.first, p.last)
	if why != "" {
		return 0, nil, why
	}
	p.key = p.key[:0]
	for i := range p.fields {
		value := p.combined.values[p.fields[i].column]
		if value == nil {
			return 0, nil, p.missing[i]
		}
		if len(p.fields) == 1 {
			return t, value, ""
		}
		p.join(value)
	}
	return t, p.key, ""
}

// parseJSON uses the fields before a fault if they include all it needs, so that it reads lines that are cut short.
func (p *parser) parseJSON(line []byte) (t int64, key []byte, why string) {
	whole := p.json.parse(line)
	t, why = p.jsonTime()
	p.key = p.key[:0]
	for i := 0; i < len(p.fields) && why == ""; i++ {
		var value []byte
		switch value, why = p.jsonField(i); {
		case why != "":
		case len(p.fields) == 1:
			return t, value, ""
		default:
			p.join(value)
		}
	}
	switch {
	case why == "":
		return t, p.key, ""
	case !whole:
		return 0, nil, whyNotJSON
	}
	return 0, nil, why
}

// jsonTime returns the first readable time.
func (p *parser) jsonTime() (t int64, why string) {
	why = whyNoTime
	for _, slot := range p.timeAt {
		value := p.json.values[slot]
		if value == nil {
			continue
		}
		t, failed := parseTime(value)
		if failed == "" {
			return t, ""
		}
		if why == whyNoTime {
			why = failed
		}
	}
	return 0, why
}

// jsonField returns the first value of a field. The first client decides, even one that is not an address: further ones
// may be those of proxies.
func (p *parser) jsonField(i int) (value []byte, why string) {
	f := &p.fields[i]
	for j, slot := range p.fieldAt[i] {
		if value = p.json.values[slot]; value != nil {
			value = f.column.from(value, f.sources[j].kind)
		}
		switch {
		case value == nil:
		case f.column == columnIP:
			p.client, why = appendClient(p.client[:0], value)
			return p.client, why
		default:
			return value, ""
		}
	}
	return nil, p.missing[i]
}

// join adds a value to a key of several values. It quotes a value that is empty or contains a space or an
// unprintable character, so that different lists never look equal.
func (p *parser) join(value []byte) {
	if len(p.key) > 0 {
		p.key = append(p.key, ' ')
	}
	for _, c := range value {
		if c <= ' ' || c == '"' || c >= 0x7f {
			p.key = strconv.AppendQuote(p.key, string(value))
			return
		}
	}
	if len(value) == 0 {
		p.key = append(p.key, `""`...)
		return
	}
	p.key = append(p.key, value...)
}

func (p *parser) costFrom(field string) { p.costAt = []int{p.json.want(field)} }

const maxCost = 1_000_000_000

// cost returns the cost of the last line.
func (p *parser) cost() (cost uint32, why string) {
	if len(p.costAt) == 0 {
		return 1, ""
	}
	if !p.isJSON {
		return 0, whyNoCost
	}
	n, err := strconv.ParseUint(string(p.json.values[p.costAt[0]]), 10, 32)
	if err != nil || n > maxCost {
		return 0, whyNoCost
	}
	return uint32(n), ""
}
