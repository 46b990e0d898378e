package browsertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/playground"
)

// answer asks the program in the browser, about a log if one is chosen.
func (p *playgroundPage) answer(question map[string]any, withLog bool) string {
	p.t.Helper()
	text, err := json.Marshal(question)
	if err != nil {
		p.t.Fatal(err)
	}
	file := "undefined"
	if withLog {
		file = "document.querySelector('#file').files[0]"
	}
	return p.answers([]string{string(text)}, file)[0]
}

// answers asks one question after the other. file is an expression.
func (p *playgroundPage) answers(questions []string, file string) []string {
	p.t.Helper()
	all, err := json.Marshal(questions)
	if err != nil {
		p.t.Fatal(err)
	}
	return eval[[]string](p.tab, fmt.Sprintf(`new Promise((resolve, reject) => {
		const answers = [], questions = %s, next = () => asking.postMessage({ id: 1, question: questions[answers.length], file: %s })
		window.asking ??= new Worker('worker.js')
		asking.onmessage = ({ data }) => {
			if (data.gone) reject(new Error(data.gone))
			else if (data.ready) next()
			else if (data.answer) answers.push(data.answer) < questions.length ? next() : resolve(answers)
		}
		if (window.asked) next()
		else { window.asked = true; asking.postMessage({ start: true }) }
	})`, all, file))
}

// native answers the same question on this machine.
func native(t *testing.T, question map[string]any, log []byte) string {
	t.Helper()
	text, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	host := playground.Host{}
	if log != nil {
		host.Log, host.Size = bytes.NewReader(log), int64(len(log))
	}
	return string(playground.Answer(text, host))
}

// part returns a field of an answer, as JSON whose objects are in order.
func part(t *testing.T, text string, path ...string) string {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%.300s: %v", text, err)
	}
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	ordered, _ := json.Marshal(value)
	return string(ordered)
}

// printed returns what the program prints as JSON.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	out, err := weirCommand(t, args...).Output()
	if err != nil && len(out) == 0 {
		t.Fatalf("weir %q: %v", args, err)
	}
	return part(t, string(out))
}

const (
	rulesText = "rules:\n  - {name: login, match: {path: /login}, key: client, limit: token bucket 5/m burst 5}\n  - {name: all, match: any, key: client, limit: 100/s}\n"
	testsText = "rules: weir.yaml\ntests:\n  - name: holds\n    steps:\n      - {request: {path: /login, client: 192.0.2.1}, times: 5, expect: allow}\n" +
		"  - name: fails\n    steps:\n      - {request: {path: /login, client: 192.0.2.1}, expect: deny}\n"
)

// The browser, the same code on this machine and the commands of the program give one answer.
func TestThePlaygroundSaysWhatTheProgramSays(t *testing.T) {
	p := openPlayground(t)
	p.visit("#part=log", 1280, "light")
	log, err := os.ReadFile(realLog)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	rules, tests := write("weir.yaml", rulesText), write("weir.test.yaml", testsText)
	p.choose("access.log.gz", bytesOf(log))
	const traffic = "poisson 20/s from 5 clients skew 1.1 retry obeying jitter 1s and burst 50/s for 1s every 3s cost 1 to 3"
	tried := []string{"fixed window 5/10s", "sliding window 60/1m"}
	for _, c := range []struct {
		question map[string]any
		path     []string // of the part that a command prints
		args     []string // of the command, with --format json
		withLog  bool
	}{
		{map[string]any{"do": "play", "limits": []string{"fixed window 10/2s", "token bucket 3/s burst 5 and 100/m"}, "traffic": traffic, "for": "30s", "seed": 9}, []string{"ok", "comparison"},
			[]string{"simulate", "--limit", "fixed window 10/2s", "--limit", "token bucket 3/s burst 5 and 100/m", "--traffic", traffic, "--for", "30s", "--seed", "9"}, false},
		{map[string]any{"do": "play", "limits": []string{"leaky bucket 5/s queue 9"}, "traffic": traffic, "for": "9s", "each": true}, []string{"ok", "comparison"},
			[]string{"simulate", "--limit", "leaky bucket 5/s queue 9", "--traffic", traffic, "--for", "9s", "--seed", "0", "--per-client"}, false},
		{map[string]any{"do": "log", "name": "access.log.gz", "key": "ip", "tried": tried}, []string{"ok", "report"}, []string{"replay", "--limit", tried[0], "--limit", tried[1], realLog}, true},
		{map[string]any{"do": "log", "name": "access.log.gz", "key": "ip,path", "suggest": "refuse 0.1%"}, []string{"ok", "suggestions"}, []string{"replay", "--key", "ip,path", "--suggest", "refuse 0.1%", realLog}, true},
		{map[string]any{"do": "explain", "rules": rulesText, "request": "path=/login\nclient=192.0.2.1"}, []string{"ok", "explanation"}, []string{"explain", "--config", rules, "path=/login", "client=192.0.2.1"}, false},
		{map[string]any{"do": "test", "rules": rulesText, "tests": testsText}, []string{"ok"}, []string{"rules", "test", tests}, false},
		{map[string]any{"do": "check", "text": "token bukket 1/s"}, nil, nil, false},
		{map[string]any{"do": "check", "text": "quota 5/day in Europe/Pariz"}, nil, nil, false},
		{map[string]any{"do": "explain", "rules": "rules: ["}, nil, nil, false},
		{map[string]any{"do": "log", "name": "access.log.gz", "key": "ip", "tried": tried, "page": true, "names": true}, nil, nil, true},
	} {
		var about []byte
		if c.withLog {
			about = log
		}
		here := native(t, c.question, about)
		if there := p.answer(c.question, c.withLog); there != here {
			t.Errorf("%v: the browser says\n%.1000s\nthis machine says\n%.1000s", c.question, there, here)
		}
		if c.args == nil {
			continue
		}
		said := strings.ReplaceAll(strings.ReplaceAll(printed(t, append(c.args, "--format", "json")...), dir+"/", ""), realLog, "access.log.gz")
		if got := part(t, here, c.path...); got != said {
			t.Errorf("%v: got\n%.1500s\nthe program says\n%.1500s", c.question, got, said)
		}
	}
	failure := part(t, native(t, map[string]any{"do": "check", "text": "token bukket 1/s"}, nil), "error", "message")
	out, _ := weirCommand(t, "check", "token bukket 1/s").CombinedOutput()
	var message string
	if err := json.Unmarshal([]byte(failure), &message); err != nil || !strings.HasPrefix(string(out), "weir: "+message+"\nhint: ") {
		t.Errorf("the error is %q, and that of weir check %q", message, out)
	}
}

// The times decide nothing: the browser has one thread and no code of this processor's own.
func TestTheBrowserTriesALargeLogAsThisMachineDoes(t *testing.T) {
	p := openPlayground(t)
	p.visit("#part=log", 1280, "light")
	var lines bytes.Buffer
	for i := range 300_000 {
		fmt.Fprintf(&lines, "192.0.%d.%d - - [17/May/2015:%02d:%02d:%02d +0000] \"GET /presentations/%d HTTP/1.1\" 200 %d \"-\" \"Mozilla/5.0 (X11; Linux x86_64)\"\n",
			i*i%11, i*7%251, i/3600/25%24, i/1500%60, i/25%60, i%997, i%5000)
	}
	p.choose("large.log", bytesOf(lines.Bytes()))
	p.await("document.querySelector('#log-answer .lead') || document.querySelector('#log-problem').textContent")
	question := map[string]any{"do": "log", "name": "large.log", "key": "ip", "tried": []string{"token bucket 1/s burst 10", "sliding window 60/1m"}}
	least := func(ask func()) (best time.Duration) {
		for range 3 {
			began := time.Now()
			ask()
			if took := time.Since(began); best == 0 || took < best {
				best = took
			}
		}
		return best
	}
	runtime.GC() // what other tests have left counts towards the bound on memory
	if here, there := native(t, question, lines.Bytes()), p.answer(question, true); here != there {
		t.Errorf("the browser says\n%.1000s\nthis machine says\n%.1000s", there, here)
	}
	here, there := least(func() { native(t, question, lines.Bytes()) }), least(func() { p.answer(question, true) })
	t.Logf("300,000 lines: %v on this machine, %v in the browser, %.1f times", here, there, float64(there)/float64(here))
}
