package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/program"
	command "github.com/weirflow/weir/cmd/weir/internal/simulate"
	"github.com/weirflow/weir/simulate"
)

// `make docs` writes the page and its pictures.
var writeDocs = flag.Bool("write-docs", false, "write docs/why/choosing.md and its pictures")

const (
	tourFile     = "docs/why/choosing.md"
	tourSource   = "docs/why/choosing.tmpl"
	tourPictures = "docs/pictures"
)

// docs/why/choosing.md is what its source says, with the output of each command and every number computed here. A picture
// is drawn again too.
func TestTheTourShowsWhatTheProgramSays(t *testing.T) {
	if testing.Short() {
		t.Skip("the commands of the page simulate for minutes under the race detector; make long runs them without it")
	}
	t.Chdir("../..")
	source, err := os.ReadFile(tourSource)
	if err != nil {
		t.Fatal(err)
	}
	tour := &tour{t: t, pictures: t.TempDir()}
	if *writeDocs {
		tour.pictures = tourPictures
	}
	page, err := template.New("tour").Funcs(tour.functions()).Parse(string(source))
	if err != nil {
		t.Fatal(err)
	}
	var written bytes.Buffer
	if err := page.Execute(&written, nil); err != nil {
		t.Fatal(err)
	}
	tour.checkNumbers(string(source))
	if *writeDocs {
		if err := os.WriteFile(tourFile, written.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	tour.compare(tourFile, written.Bytes())
	drawn, err := os.ReadDir(tour.pictures)
	if err != nil || len(drawn) < 5 {
		t.Fatalf("%d pictures, %v, want those of the page", len(drawn), err)
	}
	for _, picture := range drawn {
		again, err := os.ReadFile(filepath.Join(tour.pictures, picture.Name()))
		if err != nil {
			t.Fatal(err)
		}
		tour.compare(filepath.Join(tourPictures, picture.Name()), again)
	}
}

// tour runs the commands of the page.
type tour struct {
	t        *testing.T
	pictures string
	commands []string
	numbers  []string // of the prose, which a command must hold
	printed  string   // by the last command
}

func (tour *tour) functions() template.FuncMap {
	return template.FuncMap{
		"show": tour.show, "once": tour.once, "field": tour.field, "cell": tour.cell, "n": tour.number, "cited": cited, "link": link,
		"figure": tour.figure, "fault": fault, "disagreements": tour.disagreements,
	}
}

func (tour *tour) compare(path string, want []byte) {
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		excerpt := func(b []byte) string { return string(b[min(at, len(b)):min(at+120, len(b))]) }
		tour.t.Errorf("%s is not what the program says now; 'make docs' writes it again: %v, from byte %d: %q, want %q", path, err, at, excerpt(got), excerpt(want))
	}
}

var (
	actions = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	digit   = regexp.MustCompile(`[0-9]+.{0,40}`)
)

// checkNumbers finds numbers that no function made, and numbers of the prose that are in no command.
func (tour *tour) checkNumbers(source string) {
	if found := digit.FindString(actions.ReplaceAllString(source, "")); found != "" {
		tour.t.Errorf("%s has a number that is not computed: %q", tourSource, found)
	}
	for _, number := range tour.numbers {
		whole := regexp.MustCompile(`(^|[^0-9.])` + regexp.QuoteMeta(number) + `([^0-9.]|$)`)
		if !slices.ContainsFunc(tour.commands, whole.MatchString) {
			tour.t.Errorf("%s says %s, which is in no command of it", tourSource, number)
		}
	}
}

func (tour *tour) number(text string) string {
	tour.numbers = append(tour.numbers, text)
	return text
}

// show runs a command and prints it with its output: all of it, or the lines that begin with one of the texts.
func (tour *tour) show(command string, beginnings ...string) string {
	tour.commands = append(tour.commands, command)
	tour.printed = tour.run(command)
	if len(beginnings) == 0 {
		return transcript(command, tour.printed)
	}
	return transcript(command, linesThat(tour.printed, func(line string) bool {
		return slices.ContainsFunc(beginnings, func(text string) bool { return strings.HasPrefix(line, text) })
	}))
}

// once does the same, with the first line of each beginning.
func (tour *tour) once(command string, beginnings ...string) string {
	tour.commands = append(tour.commands, command)
	tour.printed = tour.run(command)
	return transcript(command, linesThat(tour.printed, func(line string) bool {
		i := slices.IndexFunc(beginnings, func(text string) bool { return strings.HasPrefix(line, text) })
		if i >= 0 {
			beginnings = slices.Delete(slices.Clone(beginnings), i, i+1)
		}
		return i >= 0
	}))
}

func transcript(command, printed string) string { return "```\n$ " + command + "\n" + printed + "```" }

// linesThat returns the lines that are wanted, with an empty line where one lies between them, and an ellipsis.
func linesThat(text string, wanted func(line string) bool) (shown string) {
	empty := false
	for line := range strings.Lines(text) {
		if line == "\n" {
			empty = shown != ""
		}
		if !wanted(line) {
			continue
		}
		if empty {
			shown += "\n"
		}
		shown += line
		empty = false
	}
	return shown + "…\n"
}

// run runs "weir …", or "zgrep PATTERN FILE | weir …", in this process.
func (tour *tour) run(command string) string {
	var in io.Reader = strings.NewReader("")
	if filter, rest, found := strings.Cut(command, " | "); found {
		in, command = tour.zgrep(filter), rest
	}
	var args []string
	for _, w := range word.FindAllStringSubmatch(strings.TrimPrefix(command, "weir "), -1) {
		args = append(args, strings.Replace(w[1]+w[2], tourPictures, tour.pictures, 1))
	}
	var out, errs strings.Builder
	if code := program.Run(args, in, &out, &errs); code != 0 {
		tour.t.Fatalf("%s: exit %d: %s", command, code, errs.String())
	}
	return out.String()
}

func (tour *tour) zgrep(command string) io.Reader {
	w := word.FindAllStringSubmatch(command, -1)
	if len(w) != 3 || w[0][2] != "zgrep" {
		tour.t.Fatalf("%s: want zgrep with a pattern and a file", command)
	}
	var found strings.Builder
	pattern := regexp.MustCompile(w[1][1])
	for line := range strings.Lines(tour.log(w[2][2])) {
		if pattern.MatchString(line) {
			found.WriteString(line)
		}
	}
	return strings.NewReader(found.String())
}

func (tour *tour) log(path string) string {
	packed, err := os.ReadFile(path)
	if err != nil {
		tour.t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		tour.t.Fatal(err)
	}
	text, err := io.ReadAll(unzipped)
	if err != nil {
		tour.t.Fatal(err)
	}
	return string(text)
}

// cell returns the last column of the last line that begins with the limit.
func (tour *tour) cell(limit, _ string) string {
	cell := ""
	for line := range strings.Lines(tour.printed) {
		if strings.HasPrefix(line, limit+" ") {
			fields := strings.Fields(line)
			cell = fields[len(fields)-1]
		}
	}
	if cell == "" {
		tour.t.Fatalf("no line begins with %s", limit)
	}
	return cell
}

const realLog = "simulate/testdata/access.log.gz"

// field returns a number of lines or keys of the real log.
func (tour *tour) field(name string) string {
	var report map[string]any
	if err := json.Unmarshal([]byte(tour.run("weir replay --limit unlimited --format json "+realLog)), &report); err != nil {
		tour.t.Fatal(err)
	}
	return cli.Thousands(int64(report[name].(float64)))
}

// What others have published. Each text was read at the link.
func cited(text string) string { return text }

func link(name string) string {
	return map[string]string{"cloudflare": "https://blog.cloudflare.com/counting-things-a-lot-of-different-things/"}[name]
}

// figure computes a number of the retry storms.
func (tour *tour) figure(name string) string {
	traffic, what, _ := strings.Cut(name, " ")
	text := map[string]string{
		"storm": "storm 500 at 5s retry obeying", "jitter": "storm 500 at 5s retry obeying jitter 10s", "deaf": "storm 500 at 5s retry every 100ms",
	}[traffic]
	p, err := simulate.ParsePattern(text)
	if err != nil {
		tour.t.Fatal(err)
	}
	found, err := p.Compare([]string{"token bucket 50/s burst 50"}, simulate.Scenario{Length: 30e9, Seed: 1})
	if err != nil {
		tour.t.Fatal(err)
	}
	l := found.Limits[0]
	if what == "attempts" {
		return cli.Thousands(l.Attempts)
	}
	perSecond, most := int(1e9/l.Series.Every), int64(0)
	for i := 5*perSecond + 1; i+perSecond <= len(l.Series.Offered); i++ {
		sum := int64(0)
		for _, n := range l.Series.Offered[i : i+perSecond] {
			sum += n
		}
		most = max(most, sum)
	}
	return cli.Thousands(most)
}

// fault returns what a refill that drops fractions does.
func fault(name string) (string, error) {
	faults, err := command.RoundingFaults()
	if err != nil {
		return "", err
	}
	f := faults[slices.IndexFunc(faults, func(f command.PollReport) bool {
		return f.Name == "lazy refill that drops fractions" && f.Admitted < f.Due
	})]
	return map[string]string{"every": cli.Duration(f.Every), "admitted": cli.Thousands(f.Admitted), "due": cli.Thousands(f.Due)}[name], nil
}

// disagreement is a row of the table about sliding counters.
type disagreement struct{ Traffic, Limit, Requests, Share, OnlyCounter, OnlyLog string }

// disagreements compare a sliding window with a sliding log on several kinds of traffic.
func (tour *tour) disagreements() (rows []disagreement) {
	for _, c := range []struct {
		traffic, rate string
		lines         string
	}{
		{"the real log", "60/1m", tour.log(realLog)},
		{"the real log", "5/10s", tour.log(realLog)},
		{"skewed clients at random, most far below", "60/1m", madeUp(400_000, func(r *rand.Rand, zipf *rand.Zipf, n int) (int, uint64) { return r.IntN(3600_000), zipf.Uint64() })},
		{"even clients at random, all near the limit", "60/1m", madeUp(400_000, func(r *rand.Rand, _ *rand.Zipf, n int) (int, uint64) { return r.IntN(3600_000), uint64(n % 111) })},
		{"bursts at the end of a window", "60/1m", madeUp(400_000, func(r *rand.Rand, _ *rand.Zipf, n int) (int, uint64) {
			return 60_000*r.IntN(60) + 55_000 + r.IntN(10_000), uint64(n % 111)
		})},
	} {
		events, onlyCounter, onlyLog := disagree(tour.t, c.lines, "sliding window "+c.rate, "sliding log "+c.rate)
		share := fmt.Sprintf("%.3g%%", 100*float64(onlyCounter+onlyLog)/float64(events))
		rows = append(rows, disagreement{c.traffic, c.rate, cli.Thousands(events), share, cli.Thousands(onlyCounter), cli.Thousands(onlyLog)})
	}
	return rows
}

// logLine finds the client and the time of a line in the combined format, or of one of madeUp.
var logLine = regexp.MustCompile(`(?m)^(\S+) .*?\[(.*?)\]|"ts":(\d+),"ip":"(\d+)"`)

// disagree counts the lines of a log, and those that exactly one of two limits admits.
func disagree(t *testing.T, log, first, second string) (lines, onlyFirst, onlySecond int64) {
	t.Helper()
	clients := map[string][]int64{}
	for _, m := range logLine.FindAllStringSubmatch(log, -1) {
		ms, err := strconv.ParseInt(m[3], 10, 64)
		if m[3] == "" {
			var at time.Time
			at, err = time.Parse("02/Jan/2006:15:04:05 -0700", m[2])
			ms = at.UnixMilli()
		}
		if err != nil {
			t.Fatal(err)
		}
		clients[m[1]+m[4]] = append(clients[m[1]+m[4]], ms)
	}
	for _, times := range clients {
		slices.Sort(times)
		var now int64
		one, other := limiterOf(t, first, &now), limiterOf(t, second, &now)
		for _, ms := range times {
			now = ms * int64(time.Millisecond)
			a, b := one.Allow(), other.Allow()
			lines++
			if a && !b {
				onlyFirst++
			}
			if b && !a {
				onlySecond++
			}
		}
	}
	return lines, onlyFirst, onlySecond
}

func limiterOf(t *testing.T, text string, now *int64) *weir.Limiter {
	t.Helper()
	limits, err := weir.ParseLimits(text)
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := weir.NewWith(limits[0], weir.Options{Clock: func() int64 { return *now }})
	if err != nil {
		t.Fatal(err)
	}
	return limiter
}

// madeUp returns JSON lines: a time in milliseconds and a client for each.
func madeUp(n int, draw func(r *rand.Rand, zipf *rand.Zipf, n int) (millisecond int, client uint64)) string {
	random := rand.New(rand.NewPCG(1, 1))
	zipf := rand.NewZipf(random, 1.02, 20, 99_999)
	var b strings.Builder
	for i := range n {
		at, client := draw(random, zipf, i)
		fmt.Fprintf(&b, "{\"ts\":%d,\"ip\":\"%d\"}\n", int64(1_500_000_000_000)+int64(at), client)
	}
	return b.String()
}
