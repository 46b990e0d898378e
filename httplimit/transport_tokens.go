package httplimit

import (
	"encoding/json"

	"github.com/weirflow/weir/httplimit/internal/obey"
)

// Tokens are the tokens of a request to a language model. OpenAI limits the sum of both, and Anthropic also each. Negative
// numbers count as 0. A program that knows only the sum sets one of them.
type Tokens struct {
	Input  int64 // tokens of the prompt
	Output int64 // tokens of the answer
}

func (t Tokens) bounded() obey.Tokens {
	each := obey.NewTokens(0, t.Input, t.Output)
	return obey.NewTokens(each[1]+each[2], each[1], each[2])
}

// usageReader finds the usage that a language model reports for a request: the last object "usage" of an answer in JSON,
// or of the events of a stream. It keeps one such object at most, and no other part of the answer.
type usageReader struct {
	matched int    // bytes of usageKey
	object  []byte // the part of the usage that was read
	depth   int    // depth of its braces; 0 outside
	last    usage
}

// In a string of JSON the quotes would have backslashes.
const (
	usageName = `"usage"`
	usageKey  = usageName + ":{"
	maxUsage  = 4 << 10 // bytes of an object
)

// read reads a part of an answer. Until the answer has ended, its usage is a lower bound.
func (u *usageReader) read(p *pass, part []byte, ended bool) {
	news := false
	for _, c := range part {
		if u.depth == 0 {
			u.search(c)
		} else if u.collect(c) {
			news = true
		}
	}
	used := u.last.tokens()
	if used == (obey.Tokens{}) || !news && !ended {
		return
	}
	if !ended {
		used = used.Max(p.ticket.Need.Tokens)
	}
	p.used.Store(&used)
}

// search looks for the beginning of an object.
func (u *usageReader) search(c byte) {
	switch {
	case c == usageKey[u.matched]:
		u.matched++
	case u.matched >= len(usageName) && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
	case c == '"':
		u.matched = 1
	default:
		u.matched = 0
	}
	if u.matched == len(usageKey) {
		u.matched, u.depth, u.object = 0, 1, append(u.object[:0], '{')
	}
}

// collect reads a byte of an object. It reports whether the object has ended and states tokens.
func (u *usageReader) collect(c byte) bool {
	u.object = append(u.object, c)
	switch c {
	case '{':
		u.depth++
	case '}':
		u.depth--
	}
	if u.depth == 0 {
		return u.take()
	}
	if len(u.object) == maxUsage {
		u.depth = 0
	}
	return false
}

// take reads the whole object. Fields that it leaves out keep the values of an earlier one.
func (u *usageReader) take() bool {
	next := u.last
	if json.Unmarshal(u.object, &next) != nil || next.tokens() == (obey.Tokens{}) {
		return false
	}
	u.last = next
	return true
}

// usage is the object of OpenAI, of Anthropic and of servers like theirs.
type usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Input      int64 `json:"input_tokens"`
	Cached     int64 `json:"cache_creation_input_tokens"` // Anthropic limits these too, unlike those read from a cache
	Output     int64 `json:"output_tokens"`
	Total      int64 `json:"total_tokens"`
}

func (u usage) tokens() obey.Tokens {
	openAI, anthropic := Tokens{u.Prompt, u.Completion}.bounded(), Tokens{u.Input, u.Output}.bounded()
	cached := Tokens{Input: u.Cached}.bounded()
	used := Tokens{openAI[1] + anthropic[1] + cached[1], openAI[2] + anthropic[2]}.bounded()
	if u.Total > 0 {
		return obey.NewTokens(u.Total, used[1], used[2])
	}
	return used
}
