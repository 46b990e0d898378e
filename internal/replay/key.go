package replay

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/accesslog"
)

// Key names the fields of a line that identify a key of the traffic.
//
// Every format may have these fields: ip, method, path (without the query), query, uri (path and query), status, user,
// referer, agent, host, and header.NAME. Any other name is a column, a variable of a pattern, or a field of JSON lines,
// where dots name a nested field: request.headers.Host.0. The ip is the key that every front gives a client: an IPv4
// address, or the network of an IPv6 address. In a key of several fields, a value is quoted if it is empty or contains a
// space, so the values stay distinct.
type Key struct {
	fields []string
}

const maxFields = 16

// ParseKey reads names of fields. Each text holds one name, or several separated by commas.
func ParseKey(texts ...string) (Key, error) {
	var key Key
	for _, text := range texts {
		for name := range strings.SplitSeq(text, ",") {
			name = strings.TrimSpace(name)
			if name == "" {
				return Key{}, fmt.Errorf("replay: key %q: a field has no name", text)
			}
			if slices.Contains(key.fields, name) {
				return Key{}, fmt.Errorf("replay: key %q: field %s occurs twice", text, name)
			}
			key.fields = append(key.fields, name)
		}
	}
	switch n := len(key.fields); {
	case n == 0:
		return Key{}, errors.New("replay: key: names no field")
	case n > maxFields:
		return Key{}, fmt.Errorf("replay: key: %d fields, more than %d", n, maxFields)
	}
	return key, nil
}

// String returns the names of the fields, separated by commas.
func (k Key) String() string { return strings.Join(k.fields, ",") }

// keyOf returns the key of an entry, valid until the next one, or the reason why it has none.
func (t *Traffic) keyOf(e *accesslog.Entry) (key []byte, why string) {
	t.text = t.text[:0]
	for _, slot := range t.slots {
		value, ok := e.Value(slot)
		if !ok && value == nil {
			return nil, e.Why(slot)
		}
		if key = value; len(t.slots) > 1 {
			t.text = join(t.text, value)
			key = t.text
		}
	}
	if len(key) > weir.MaxKey {
		return nil, whyLongKey
	}
	return key, ""
}

// join adds a value to a key of several values. It quotes a value that is empty or contains a space or an
// unprintable character, so that different lists never look equal.
func join(key, value []byte) []byte {
	if len(key) > 0 {
		key = append(key, ' ')
	}
	for _, c := range value {
		if c <= ' ' || c == '"' || c >= 0x7f {
			return strconv.AppendQuote(key, string(value))
		}
	}
	if len(value) == 0 {
		return append(key, `""`...)
	}
	return append(key, value...)
}

// MaxCost is the largest cost of a line.
const MaxCost = 1_000_000_000

// costOf returns the cost of an entry.
func (t *Traffic) costOf(e *accesslog.Entry) (cost uint32, why string) {
	if len(t.cost) == 0 {
		return 1, ""
	}
	value, _ := e.Value(t.cost[0])
	n, err := strconv.ParseUint(string(value), 10, 32)
	if err != nil || n > MaxCost {
		return 0, whyNoCost
	}
	return uint32(n), ""
}

// The reasons to reject an entry. Each completes "the line …".
const (
	whyLongKey  = "has a key longer than 4096 bytes"
	whyNoCost   = "has no cost that is a whole number up to 1,000,000,000"
	whyTooMany  = "comes after 250,000,000 others, the most that are kept"
	whyTooMixed = "has a new key after 33,554,432 others, the most that are kept"
)
