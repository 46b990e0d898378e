package browsertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/redistest"
)

// soon is how long the page may take to show what has changed. That is the median of all changes of a test, because the machine may
// be busy with other tests at one of them.
const soon = 2 * time.Second

// show opens a panel.
func (b *tab) show(panel string) {
	b.t.Helper()
	eval[*string](b, fmt.Sprintf("location.hash = %q, null", panel))
	b.await("document.querySelector('#" + strings.Split(panel, "/")[0] + ":not([hidden])')")
}

// watch opens the page of a daemon, and waits for its first figures.
func (b *tab) watch(url string) {
	b.t.Helper()
	b.open(url, 1280, 900, "light")
	b.await("!document.querySelector('main').hidden")
}

// text is an expression for the text of an element, with plain spaces.
func text(selector string) string {
	return fmt.Sprintf("(document.querySelector(%q)?.innerText ?? '').replaceAll('\\u00a0', ' ')", selector)
}

func shows(selector, what string) string { return fmt.Sprintf("%s.includes(%q)", text(selector), what) }

// confirm waits for the dialog, returns its line, and runs it.
func (b *tab) confirm() (line string) {
	b.t.Helper()
	b.await("document.querySelector('dialog').open")
	line = eval[string](b, "document.querySelector('#ask-line').textContent")
	b.click("#ask-run")
	b.await("!document.querySelector('dialog').open && " + text("#news") + " !== ''")
	return line
}

// fill focuses a field and puts text into it, as someone who pastes does.
func (b *tab) fill(selector, value string) {
	b.t.Helper()
	eval[*string](b, fmt.Sprintf("(field => { field.focus(); field.value = %q; field.dispatchEvent(new Event('input', { bubbles: true })); field.dispatchEvent(new Event('change', { bubbles: true })); return null })(document.querySelector(%q))", value, selector))
}

// lookUp types a key into the search.
func (b *tab) lookUp(key string) {
	b.t.Helper()
	b.show("keys")
	b.fill("#key-input", key)
	b.press("\r")
	b.await(fmt.Sprintf("document.querySelector('#key h2')?.textContent === %q && document.querySelector('#key table')", key))
}

// row is an expression for the text of the row of a table that has a word.
func row(table, word string) string {
	return fmt.Sprintf("(Array.from(document.querySelectorAll('%s tbody tr')).find(r => r.innerText.includes(%q))?.innerText ?? '').replaceAll('\\u00a0', ' ')", table, word)
}

// change is a change of a daemon, and what the page shows then.
type change struct {
	name, panel string
	do          func()
	want        string // a condition
}

func changesOf(d *liveDaemon) []change {
	refuse := func() {
		for range 5 {
			d.take(client("/quiet", "198.51.100.1"))
		}
	}
	return []change{
		{"refusals, in Keys", "keys", refuse, shows("#refused-keys", "198.51.100.1")},
		{"refusals, in Rules", "rules", refuse, row("#rules-table", "quiet") + ".match(/1\\/h\\s+1\\s+9/)"},
		{"a block by ctl", "keys", func() { d.ctl("block", "198.51.100.7", "--for", "1h") }, row("#overrides", "198.51.100.7") + ".match(/all rules\\s+blocked\\s+(1 h|59 min)/)"},
		{"a block by ctl, in Now", "now", func() { d.ctl("block", "198.51.100.8", "--for", "1h") }, shows("#facts", "2 overrides")},
		{"its end, in Audit", "audit", func() { d.ctl("clear", "198.51.100.8") }, row("#audit-table", "remove") + ".includes('198.51.100.8')"},
		{"a reload, in Rules", "rules", func() { d.write(strings.ReplaceAll(liveRules, "2/h", "7/h")) }, row("#rules-table", "login") + ".includes('7/h')"},
		{"a rule more", "rules", func() { d.write(liveRules + "  - {name: fresh, match: {path: /fresh}, key: client, limit: 1/h}\n") }, row("#rules-table", "fresh") + ".includes('1/h')"},
		{"a broken file", "now", func() { d.write("rules: 7") }, shows("#facts", "failed, and the earlier rules stay in force")},
		{"a reload, in Now", "now", func() { d.write(liveRules) }, shows("#facts", "without problems")},
	}
}

// Every panel shows the truth within two seconds of a change by the API, by weir ctl and by changed files.
func TestEveryPanelShowsTheTruthSoon(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for engine, args := range map[string][]string{"memory": nil, "redis": {"--engine", "redis://" + server.Addr, "--deadline", "2s"}} {
		t.Run(engine, func(t *testing.T) {
			d := startLive(t, args...)
			d.load()
			b := newTab(t)
			b.watch(d.page)
			b.await(shows("#facts", engine+" decides"))
			eval[*string](b, "(p => { const draw = p.fillText; window.drawn = []; p.fillText = function (text, ...at) { drawn.push(text); draw.call(this, text, ...at) } })(CanvasRenderingContext2D.prototype), null")
			b.await(`drawn.some(text => /^\d\d:\d\d/.test(text)) && drawn.includes("0")`) // the axes of the chart
			var all []time.Duration
			for _, c := range changesOf(d) {
				b.show(c.panel)
				c.do()
				took := b.await(c.want)
				t.Logf("%s: %v", c.name, took.Round(time.Millisecond))
				all = append(all, took)
			}
			if slices.Sort(all); all[len(all)/2] > soon {
				t.Errorf("the page took %v in the median of %d changes, want at most %v", all[len(all)/2], len(all), soon)
			}
			b.checkKey(d)
			b.checkWhatIf()
			b.checkExplain()
		})
	}
}

// checkKey looks at a key that has used up its limit, gives it back a unit and resets it.
func (b *tab) checkKey(d *liveDaemon) {
	b.t.Helper()
	for range 3 {
		d.take(client("/login", "198.51.100.20"))
	}
	b.lookUp("198.51.100.20")
	b.await(row("#key", "login") + ".match(/0 of 2.*in \\d+ min/s)")
	b.click("#key tbody tr .inline button")
	if got, want := b.confirm(), "weir ctl grant --admin unix:"+d.socket+" login 198.51.100.20 1"; got != want {
		b.t.Errorf("the line of a grant is %s, want %s", got, want)
	}
	b.await(row("#key", "login") + ".includes('1 of 2')")
	b.click("#key tbody tr button")
	if got, want := b.confirm(), "weir ctl reset --admin unix:"+d.socket+" login 198.51.100.20"; got != want {
		b.t.Errorf("the line of a reset is %s, want %s", got, want)
	}
	b.await(row("#key", "login") + ".includes('2 of 2')")
}

// checkWhatIf tries a limit that refuses nobody, and one that cannot be read.
func (b *tab) checkWhatIf() {
	b.t.Helper()
	b.show("what-if")
	b.fill("#what-if-rule", "login")
	b.fill("#what-if-limit", "1000/s")
	b.await(text("#what-if-answer") + ".match(/In force\\s+[1-9].*Your limit\\s+0 refused/s)")
	b.fill("#what-if-limit", "many")
	b.await(shows("#what-if-answer .problem", "many"))
}

// checkExplain picks a refused request of a rule, and gets to know why.
func (b *tab) checkExplain() {
	b.t.Helper()
	b.show("rules/login")
	b.await("document.querySelector('#rule .picks button')")
	b.click("#rule .picks button")
	b.await(text("#rule") + ".match(/the limit of rule \"login\" decides.*counts the key \\S+ by .*2\\/h, 0 remain, free in/s)")
	if line := eval[string](b, text("#rule pre")); !strings.HasPrefix(line, "weir explain --admin unix:") || !strings.Contains(line, " path=/login client=") {
		b.t.Errorf("the line of an explanation is %s", line)
	}
}

// A block by a button is in force on another daemon of the same Redis, leaves the line in the log that weir ctl leaves, and shows the
// command that does the same.
func TestABlockByButtonIsInForceOnAnotherDaemon(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	args := []string{"--engine", "redis://" + server.Addr, "--deadline", "2s"}
	one, two := startLive(t, args...), startLive(t, args...)
	b := newTab(t)
	b.watch(one.page)
	b.lookUp("198.51.100.9")
	b.click("#override-form > button")
	line := b.confirm()
	if want := "weir ctl block --admin unix:" + one.socket + " --for 1h 198.51.100.9"; line != want {
		t.Errorf("the line is %s, want %s", line, want)
	}
	for began := time.Now(); two.take(client("/api/a", "198.51.100.9")); time.Sleep(20 * time.Millisecond) { // until the other daemon has seen it
		if time.Since(began) > patience {
			t.Fatal("the other daemon admits the blocked key")
		}
	}
	b.await(row("#overrides", "198.51.100.9") + ".includes('blocked')")
	b.click("#overrides tbody button:not(.key)")
	b.confirm()
	b.await("!" + shows("#overrides", "198.51.100.9"))
	run(t, line)
	b.await(row("#overrides", "198.51.100.9") + ".includes('blocked')")
	if lines := auditLines(one.log()); len(lines) != 3 || lines[0] != lines[2] {
		t.Errorf("the log has %q, want the lines of a block, its end, and the same block", lines)
	}
}

// auditLines returns who changed what, from the lines of the log.
func auditLines(log string) (lines []string) {
	for line := range strings.Lines(log) {
		if _, words, ok := strings.Cut(line, "msg=audit "); ok {
			words, _, _ = strings.Cut(words, " before=")
			lines = append(lines, regexp.MustCompile(` from=\S+`).ReplaceAllString(words, ""))
		}
	}
	return lines
}

// run gives a line to a shell that knows weir.
func run(t *testing.T, line string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Symlink(exe, filepath.Join(folder, "weir")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-c", line)
	cmd.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "LC_ALL=C.UTF-8")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v: %s", line, err, out)
	}
}

// The page says at once that Redis is away, who answers, and that it is back.
func TestThePageSaysThatRedisIsAwayAndBack(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := startLive(t, "--engine", "redis://"+server.Addr, "--deadline", "200ms", "--on-failure", "allow")
	d.load()
	b := newTab(t)
	b.watch(d.page)
	b.await(shows("#facts", "redis decides"))
	server.Stop()
	b.await(shows("#facts", "redis is away since") + " && " + shows("#facts", "allow") + " && " + shows("#link", "engine away") + " && " + shows("#news", "redis is away"))
	b.show("keys")
	b.fill("#key-input", "203.0.113.1")
	b.press("\r")
	b.await(shows("#key .problem", "not what the key has left"))
	server.Cont()
	b.show("now")
	b.await(shows("#facts", "redis decides") + " && " + shows("#link", "up") + " && " + shows("#news", "redis decides"))
}
