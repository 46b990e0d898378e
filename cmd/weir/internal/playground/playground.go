// Package playground answers the page "Try it": it plays limits on made-up traffic, tries them on an access log, and decides
// requests by rules. A question is JSON, and so is the answer. The page runs it in a worker as WebAssembly, and the tests run it
// as it is: it knows no browser, terminal, file or network, and its answers are those of the commands of the program.
package playground

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/internal/accesslog"
)

// question is a question of the page. Each part has fields of its own.
type question struct {
	Do string `json:"do"` // check, play, log, explain or test
	play
	logging
	ruling
	Text string `json:"text"` // for check: what someone types
}

// Failure is why there is no answer, as the program says it.
type Failure struct {
	Message string               `json:"message"`
	Hints   []string             `json:"hints,omitempty"`
	Unread  []accesslog.Rejected `json:"unread,omitempty"` // the first lines of a log without a readable one
}

// unread is an error with lines that explain it.
type unread struct {
	error
	lines []accesslog.Rejected
}

func (u unread) Unwrap() error { return u.error }

// mostAsked bounds a question, in bytes.
const mostAsked = 1 << 20

// Answer answers a question. The answer is an object with one field: ok, or error with a Failure. Answer never panics.
func Answer(asked []byte, host Host) (answered []byte) {
	defer func() {
		if p := recover(); p != nil {
			answered = failed(plain.Fail(fmt.Errorf("playground: %v", p), "this is a bug in weir: please report it with your input"))
		}
	}()
	value, err := answer(asked, host)
	if err != nil {
		return failed(err)
	}
	return written(map[string]any{"ok": value})
}

func answer(asked []byte, host Host) (any, error) {
	if len(asked) > mostAsked {
		return nil, plain.Misusef("shorten the texts", "playground: the question has %d bytes, want at most %d", len(asked), mostAsked)
	}
	var q question
	decoder := json.NewDecoder(bytes.NewReader(asked))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&q); err != nil {
		return nil, plain.Misuse(fmt.Errorf("playground: the question is not readable: %w", err), "reload the page")
	}
	switch q.Do {
	case "check":
		return check(q.Text)
	case "play":
		return q.play.run()
	case "log":
		return q.logging.run(host)
	case "explain":
		return q.ruling.explain()
	case "test":
		return q.ruling.test()
	}
	return nil, plain.Misuse(errors.New("playground: no such question: "+plain.Quoted(q.Do)), "reload the page")
}

func failed(err error) []byte {
	message, hints, _ := plain.Told(err)
	with, _ := errors.AsType[unread](err)
	return written(map[string]any{"error": Failure{message, hints, with.lines}})
}

// written returns a value as JSON. Nothing that the page asks for fails to be written.
func written(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		text, _ = json.Marshal(map[string]any{"error": Failure{Message: "playground: " + err.Error()}})
	}
	return text
}
