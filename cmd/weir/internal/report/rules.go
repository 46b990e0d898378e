package report

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/backtest"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/internal/replay"
)

// Rules is the effect that the rules of files would have had on a log.
type Rules struct {
	Logs   []string        // names of files
	Files  []backtest.File // those of the result, in its order
	Result replay.Report
	Names  bool    // show keys instead of masks
	Price  float64 // of a unit of a cost, or 0
}

// rulesPage makes the page of files of rules.
type rulesPage struct {
	replayPage
	files []ruleFile
	price float64
}

// ruleFile is the reports of a file.
type ruleFile struct {
	backtest.File
	whole replay.LimitReport
	rules []replay.LimitReport
}

func (r Rules) view(rows int) view {
	p := rulesPage{replayPage: replayPage{days: map[string]string{}, Replay: Replay{Logs: r.Logs, Key: "ip", Result: r.Result, Names: r.Names}, rows: rows, names: newNames(r.Names), who: nounOfSubject(backtest.Who(r.Result))}}
	p.price = r.Price
	p.Result.Limits = named(r.Result.Limits)
	p.divide(r.Files)
	p.head(p.headOfFiles())
	p.change()
	p.worst()
	p.rules()
	p.undecided()
	p.overTime()
	p.busiest()
	p.bans()
	p.notes()
	return p.view
}

// named returns the reports with the last part of the names of files, if that tells them apart.
func named(limits []replay.LimitReport) []replay.LimitReport {
	paths := map[string]string{} // by last part
	for _, l := range limits {
		base := filepath.Base(l.File)
		if other, ok := paths[base]; ok && other != l.File {
			return limits
		}
		paths[base] = l.File
	}
	limits = slices.Clone(limits)
	for i := range limits {
		short := *limits[i].RuleReport
		short.File = filepath.Base(short.File)
		limits[i].RuleReport = &short
	}
	return limits
}

// divide gives each file its reports, and pictures to each file and to the rules that refuse.
func (p *rulesPage) divide(files []backtest.File) {
	var drawn []int
	for i, l := range p.Result.Limits {
		if backtest.OfFile(l) {
			p.files = append(p.files, ruleFile{File: files[len(p.files)], whole: l})
			p.compared = append(p.compared, l)
		} else {
			f := &p.files[len(p.files)-1]
			f.rules = append(f.rules, l)
		}
		if backtest.OfFile(l) || l.Refused > 0 {
			drawn = append(drawn, i)
		}
	}
	p.draw(drawn)
}

// ruleName returns what a rule is called within its file.
func ruleName(l replay.LimitReport) string {
	switch {
	case l.Rule == "":
		return shorten(visible(l.Limit))
	case strings.HasSuffix(l.Rule, "~candidate"):
		return "candidate of rule " + shorten(visible(strings.TrimSuffix(l.Rule, "~candidate")))
	case l.Beside:
		return "shadow rule " + shorten(visible(l.Rule))
	}
	return "rule " + shorten(visible(l.Rule))
}

// called returns what the rules of a file are called: the 7 rules of weir.yaml.
func (f *ruleFile) called() string {
	if n := len(f.Config.Rules); n > 1 {
		return fmt.Sprintf("the %s rules of %s", plain.Thousands(int64(n)), nameOf(f.whole))
	}
	return "the one rule of " + nameOf(f.whole)
}

// headOfFiles returns the answer in one sentence, and the next sentences for a reader.
func (p *rulesPage) headOfFiles() (head string, lead []string) {
	switch len(p.files) {
	case 0:
		return "The log has no request to decide.", nil
	case 1:
		return p.headOfFile(&p.files[0]), p.leadOfFile(&p.files[0])
	case 2:
		d := p.Result.Difference
		head = fmt.Sprintf("From %s to %s, %s would be refused newly, and %s no longer.", nameOf(p.files[0].whole), nameOf(p.files[1].whole),
			p.who.count(int64(d.OnlySecond)), plain.Thousands(int64(d.OnlyFirst)))
	default:
		head, _ = p.headOfMany("files", p.compared)
	}
	for i := range p.files {
		f := &p.files[i]
		lead = append(lead, strings.Join(append([]string{p.headOfFile(f)}, p.leadOfFile(f)...), " "))
	}
	return head, lead
}

func (p *rulesPage) headOfFile(f *ruleFile) string {
	l := f.whole
	if l.Refused == 0 && l.Undecided == 0 {
		return fmt.Sprintf("With %s, no %s would notice: all %s of %s would have been admitted.", f.called(), p.who.one, plain.Plural(l.Admitted, "request"), backtest.Seen(p.Result))
	}
	requests := "requests"
	if l.Undecided > 0 {
		requests = "the requests that could be decided"
	}
	head := fmt.Sprintf("With %s, %s would notice: %s of %s would have been refused", f.called(), backtest.Noticing(p.Result, l), backtest.Share(l), requests)
	refusing := slices.DeleteFunc(slices.Clone(f.rules), func(l replay.LimitReport) bool { return l.InAll == 0 })
	switch len(refusing) {
	case 0:
	case 1:
		head += ", all by " + ruleName(refusing[0])
	default:
		most := slices.MaxFunc(refusing, func(a, b replay.LimitReport) int { return cmp.Compare(a.InAll, b.InAll) })
		head += "; most by " + ruleName(most)
	}
	return head + "."
}

// leadOfFile continues the first sentence about a file: the keys that would notice, the limit they would need, and its cost.
func (p *rulesPage) leadOfFile(f *ruleFile) (said []string) {
	l := f.whole
	if l.Refused > 0 {
		text := fmt.Sprintf("That is %s of %s.", plain.Thousands(l.Refused), plain.Plural(l.Admitted+l.Refused, "request"))
		if len(l.WorstKeys) > 0 {
			text += " " + p.mostRefused(l)
		}
		said = append(said, text)
	}
	for _, sentence := range backtest.Sentences(f.rules) {
		said = append(said, visible(sentence))
	}
	said = append(said, backtest.Bill(append([]replay.LimitReport{l}, f.rules...), p.price)...)
	if l.Undecided > 0 {
		said = append(said, fmt.Sprintf("%s could not be decided, because the log lacks what a rule depends on.", plain.Plural(l.Undecided, "further request")))
	}
	return said
}

// notes says how the numbers came about.
func (p *rulesPage) notes() {
	p.readingNotes()
	if p.Result.CustomersBy != "" {
		p.Notes = append(p.Notes, fmt.Sprintf("A customer is a value of %s in the log, which rules limit by. A request without it belongs to its address.", visible(p.Result.CustomersBy)))
	}
	p.Notes = append(p.Notes, "A client is an address, the /64 of an IPv6 address. A key is what a rule limits by.",
		"A customer would need the burst or count of its limit that would have refused none of its requests, as they came.")
	p.boundNotes("files and rules")
	p.Notes = append(p.Notes,
		"The rules decided as in a daemon: all that match a request decide it together, in order of time. A refused request counts for the rule that the answer of the daemon names.",
		"A shadow or a candidate refuses nobody. Its row shows the requests that it would have refused.",
		"A refused client may have come back later, or gone away. A log does not say, so that the replay went on as the log did.")
	p.lastNotes()
}
