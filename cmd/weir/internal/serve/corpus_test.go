package serve

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

var updateCorpus = flag.Bool("corpus.update", false, "write the answers of today into testdata/corpus")

// Each file of testdata/corpus is a daemon, with files for its flags and rules, and a conversation with its fronts. A line
// with > asks; the lines behind it are the answer, what the daemon noted (*), and what it warned of (!):
//
//	> POST /v1/take from=ADDRESS as=TOKEN Field=value | BODY
//	> rls as=TOKEN | REQUEST in JSON, as Envoy sends it over gRPC
//	> resp WORD… ; WORD…      one pipeline of commands, with words in Go's quotes where they need them
//	> begin NAME …            ask as above, and go on
//	> end NAME                the answer to that, and when it came
//	> wait DURATION
//	> engine fails|decides|hangs
//	> metrics                 counts of decisions and waits
//	> stop                    end readiness and waits
//
// $1, $2 … are tokens of reservations, in the order in which they came, and "bytes" and "keys" differ between processes.
func TestTheFrontsAnswerAsInTheCorpus(t *testing.T) {
	files, err := filepath.Glob("testdata/corpus/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			said := ""
			synctest.Test(t, func(t *testing.T) { said = newTalk(t, archive.Files).hold(string(archive.Comment)) })
			if said == string(archive.Comment) {
				return
			}
			if !*updateCorpus {
				t.Fatalf("%s: the fronts answer otherwise (-corpus.update writes it): %s", path, firstDifference(said, string(archive.Comment)))
			}
			archive.Comment = []byte(said)
			if err := os.WriteFile(path, txtar.Format(archive), 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func firstDifference(got, want string) string {
	question, lines := "", strings.Split(want, "\n")
	for i, line := range strings.Split(got, "\n") {
		if strings.HasPrefix(line, "> ") {
			question = line
		}
		if i >= len(lines) || line != lines[i] {
			return fmt.Sprintf("\n%s\ngot  %s\nwant %s", question, line, lines[min(i, len(lines)-1)])
		}
	}
	return "the answers end early"
}

// talk is a conversation with a daemon.
type talk struct {
	*corpusDaemon
	t      *testing.T
	tokens []string
	begun  map[string]chan string
}

func newTalk(t *testing.T, files []txtar.File) *talk {
	return &talk{newCorpusDaemon(t, files), t, nil, map[string]chan string{}}
}

// hold asks each question of a text, and returns the text with its answers. Comments and empty lines before a question stay.
func (k *talk) hold(text string) string {
	var said, before strings.Builder
	for line := range strings.Lines(text) {
		question, asks := strings.CutPrefix(line, "> ")
		if line == "\n" || strings.HasPrefix(line, "#") {
			before.WriteString(line)
		}
		if !asks {
			continue
		}
		said.WriteString(before.String() + line)
		before.Reset()
		answer := k.ask(strings.TrimSpace(question))
		synctest.Wait()
		said.WriteString(k.hidden(answer + k.noted()))
	}
	return said.String() + before.String()
}

// hidden returns an answer with names in place of tokens.
func (k *talk) hidden(answer string) string {
	answer = strings.ReplaceAll(answer, "\u00a0", " ") // protobuf varies the spaces of its errors
	for _, found := range aToken.FindAllString(answer, -1) {
		if !slices.Contains(k.tokens, found) {
			k.tokens = append(k.tokens, found)
		}
	}
	for i, token := range k.tokens {
		answer = strings.ReplaceAll(answer, token, "$"+strconv.Itoa(i+1))
	}
	return memory.ReplaceAllString(answer, `"$1":-`)
}

var (
	aToken = regexp.MustCompile(`[A-Za-z0-9_-]{100,}`)
	memory = regexp.MustCompile(`"(bytes|keys)":[0-9]+`) // each process has its own hash: a new key may take the place of one that has rested
)

// ask returns the answer to a question, in whole lines.
func (k *talk) ask(question string) string {
	for i := len(k.tokens); i > 0; i-- {
		question = strings.ReplaceAll(question, "$"+strconv.Itoa(i), k.tokens[i-1])
	}
	verb, rest, _ := strings.Cut(question, " ")
	switch verb {
	case "begin":
		name, question, _ := strings.Cut(rest, " ")
		began, answer := time.Now(), make(chan string, 1)
		k.begun[name] = answer
		go func() {
			text := k.ask(question)
			answer <- fmt.Sprintf("after %v\n%s", time.Since(began), text)
		}()
		return ""
	case "end":
		return <-k.begun[rest]
	case "wait":
		d, err := time.ParseDuration(rest)
		if err != nil {
			k.t.Fatal(err)
		}
		time.Sleep(d)
		return ""
	case "engine":
		k.state.Store(rest)
		return ""
	case "metrics":
		return k.counts()
	case "stop":
		k.stop()
		return ""
	case "resp":
		return k.askResp(rest)
	case "rls":
		return k.askEnvoy(rest)
	}
	return k.askHTTP(verb, rest)
}

// askHTTP asks over HTTP.
func (k *talk) askHTTP(method, rest string) string {
	head, body, _ := strings.Cut(rest, " | ")
	words := strings.Fields(head)
	r := httptest.NewRequest(method, words[0], strings.NewReader(body))
	r.RemoteAddr, r.Host = "127.0.0.1:1", "localhost"
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "as":
			r.Header.Set("Authorization", "Bearer "+k.callers[value])
		case "from":
			r.RemoteAddr = value
		case "Host":
			r.Host = value
		default:
			r.Header.Add(name, value)
		}
	}
	w := httptest.NewRecorder()
	k.http.ServeHTTP(w, r.WithContext(k.auth.Mark(r.Context())))
	var b strings.Builder
	fmt.Fprintln(&b, w.Code)
	for _, name := range slices.Sorted(maps.Keys(w.Header())) {
		if name != "Content-Type" || w.Code != http.StatusOK {
			fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(w.Header()[name], ", "))
		}
	}
	if text := strings.TrimSuffix(w.Body.String(), "\n"); text != "" {
		b.WriteString(text + "\n")
	}
	return b.String()
}

// compact returns JSON without its varying spaces.
func compact(text []byte) string {
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		return err.Error()
	}
	return b.String()
}
