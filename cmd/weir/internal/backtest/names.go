package backtest

import "fmt"

// names gives texts numbers. The empty text has 0.
type names struct {
	ids   map[string]uint32
	texts []string
	last  uint32 // that client asked for last: most keys of a request are its client
}

func newNames() *names { return &names{ids: map[string]uint32{"": 0}, texts: []string{""}} }

// of returns the name of a client.
func (n *names) of(text []byte) (id uint32, err error) {
	if n.texts[n.last] == string(text) {
		return n.last, nil
	}
	id, ok := n.ids[string(text)]
	if !ok {
		id, err = n.add(string(text))
	}
	n.last = id
	return id, err
}

// text returns the text of the name of a client.
func (n *names) text(text []byte) (string, error) {
	id, err := n.of(text)
	return n.texts[id], err
}

// ofKey returns the name of a key.
func (n *names) ofKey(text string) (uint32, error) {
	if n.texts[n.last] == text {
		return n.last, nil
	}
	if id, ok := n.ids[text]; ok {
		return id, nil
	}
	return n.add(text)
}

func (n *names) add(text string) (uint32, error) {
	if uint64(len(n.texts)) >= 1<<32-1 {
		return 0, fmt.Errorf("backtest: more than %d distinct clients and keys", uint32(1<<32-1))
	}
	id := uint32(len(n.texts))
	n.ids[text] = id
	n.texts = append(n.texts, text)
	return id, nil
}

// numbers gives some of the names numbers without gaps, such as those of the keys of a row.
type numbers struct {
	all   *names
	ids   map[uint32]uint32
	names []uint32 // by number
}

func newNumbers(all *names) *numbers { return &numbers{all: all, ids: map[uint32]uint32{}} }

func (n *numbers) of(name uint32) uint32 {
	id, ok := n.ids[name]
	if !ok {
		id = uint32(len(n.names))
		n.ids[name] = id
		n.names = append(n.names, name)
	}
	return id
}

// find returns the number of a text.
func (n *numbers) find(text string) (id uint32, ok bool) {
	name, ok := n.all.ids[text]
	if ok {
		id, ok = n.ids[name]
	}
	return id, ok
}

func (n *numbers) text(id uint32) string { return n.all.texts[n.names[id]] }

// texts returns those of all numbers.
func (n *numbers) texts() []string {
	texts := make([]string, len(n.names))
	for id := range texts {
		texts[id] = n.text(uint32(id))
	}
	return texts
}
