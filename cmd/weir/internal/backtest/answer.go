package backtest

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/internal/replay"
)

// mostSentences bounds the sentences about the rules and plans of a file.
const mostSentences = 5

// Who returns the subject of the counts over all rules: customers or clients.
func Who(r replay.Report) string {
	if r.Customers > 0 {
		return customer
	}
	return client
}

// Seen says whose requests a log has: 858 customers and 340 addresses.
func Seen(r replay.Report) string {
	if r.Customers == 0 {
		return plain.Plural(int64(r.Keys), client)
	}
	text := plain.Plural(int64(r.Customers), customer)
	if others := r.Keys - r.Customers; others > 0 {
		text += " and " + addresses(others)
	}
	return text
}

// Noticing says how many would notice a rule, or all of a file together, because a request of theirs is refused: 63 of 858 customers.
func Noticing(r replay.Report, l replay.LimitReport) string {
	switch {
	case l.Rule != "" && l.Subject != "" && l.Keys == 0:
		return ""
	case l.Rule != "" && l.Subject != "":
		return Of(l.KeysRefused, l.Keys, l.Subject)
	case !OfFile(l) && r.Customers > 0:
		return plain.Thousands(int64(l.Clients)) + " of " + Seen(r)
	case r.Customers == 0:
		return Of(l.Clients, r.Keys, Who(r))
	}
	text := Of(l.Customers, r.Customers, customer)
	if others := r.Keys - r.Customers; others > 0 {
		text += fmt.Sprintf(" and %s of %s", plain.Thousands(int64(l.Clients-l.Customers)), addresses(others))
	}
	return text
}

func addresses(n int) string {
	if n == 1 {
		return "1 address"
	}
	return plain.Thousands(int64(n)) + " addresses"
}

// Of says how many of some: 63 of 858 customers.
func Of(some, all int, who string) string {
	return plain.Thousands(int64(some)) + " of " + plain.Plural(int64(all), who)
}

// Refused says what a rule or a plan refuses, in its unit: 1,203 of 412,000 requests.
func Refused(refused, all int64, unit string) string {
	return plain.Thousands(refused) + " of " + Counted(all, unit)
}

// Counted returns a number of requests, or of units of a cost: 2 requests, 412,000 tokens.
func Counted(n int64, unit string) string {
	return plain.Plural(n, strings.TrimSuffix(cmp.Or(unit, "requests"), "s"))
}

// Sentences say of each rule, and each plan of it, that would be noticed how many would notice, when most, and which limit would have
// refused nothing: those that most would notice first. limits are the reports of one file.
func Sentences(limits []replay.LimitReport) (said []string) {
	type sentence struct {
		text  string
		rank  int
		place int
	}
	var all []sentence
	add := func(rank int, text string) { all = append(all, sentence{text, rank, len(all)}) }
	for _, l := range limits {
		if l.RuleReport == nil || l.Rule == "" || l.Refused == 0 || l.Subject == "" {
			continue
		}
		if len(l.Plans) == 0 {
			var worst *replay.MinuteReport
			if len(l.WorstMinutes) > 0 {
				worst = &l.WorstMinutes[0]
			}
			add(l.KeysRefused, told("Under "+title(l)+" ("+l.Limit+")", Of(l.KeysRefused, l.Keys, l.Subject), Refused(l.Refused, l.Admitted+l.Refused, l.Unit), worst, l.Spares))
			continue
		}
		for _, p := range l.Plans {
			if p.Refused > 0 {
				add(p.KeysRefused, told(planTitle(l, p), Of(p.KeysRefused, p.Keys, l.Subject), Refused(p.Refused, p.Admitted+p.Refused, l.Unit), p.Worst, p.Spares))
			}
		}
	}
	slices.SortFunc(all, func(a, b sentence) int { return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.place, b.place)) })
	for _, s := range all[:min(len(all), mostSentences)] {
		said = append(said, s.text)
	}
	if more := len(all) - mostSentences; more > 0 {
		said = append(said, fmt.Sprintf("So would some of %s more.", plain.Plural(int64(more), "rule or plan")))
	}
	return said
}

func title(l replay.LimitReport) string {
	switch {
	case strings.HasSuffix(l.Rule, "~candidate"):
		return "the candidate of rule " + strings.TrimSuffix(l.Rule, "~candidate")
	case l.Beside:
		return "shadow rule " + l.Rule
	}
	return "rule " + l.Rule
}

func planTitle(l replay.LimitReport, p replay.PlanReport) string {
	switch {
	case p.Own:
		return "Under the limits of single keys in " + title(l)
	case p.Plan == "":
		return "Without a plan, under " + title(l) + " (" + p.Limit + ")"
	}
	return "On plan " + p.Plan + " of " + title(l) + " (" + p.Limit + ")"
}

func told(where, who, what string, worst *replay.MinuteReport, spares string) string {
	text := fmt.Sprintf("%s, %s would notice: %s would have been refused", where, who, what)
	if worst != nil {
		text += ", most at " + worst.Minute.Format("15:04 on 2 January")
	}
	if spares != "" {
		text += "; " + spares + " would have refused nothing"
	}
	return text + "."
}

// Answer says in sentences what a file would have done: how many would notice, under which rules and plans, and the
// limit they would need. limits are the reports of the file, that of all together first.
func Answer(r replay.Report, limits []replay.LimitReport) []string {
	l := limits[0]
	with := "With " + filepath.Base(l.File) + ", "
	if l.Refused == 0 {
		text := with + "no " + Who(r) + " would notice: " + plain.Plural(l.Admitted, "request") + " of " + Seen(r) + " would have been admitted"
		if l.Undecided > 0 {
			text += ", and " + plain.Thousands(l.Undecided) + " could not be decided"
		}
		return append([]string{text + "."}, Sentences(limits)...)
	}
	text := with + Noticing(r, l) + " would notice: " + Refused(l.Refused, l.Admitted+l.Refused, "") + " would have been refused, " + Share(l)
	if l.Undecided > 0 {
		text += " of those that could be decided"
	}
	return append([]string{text + "."}, Sentences(limits)...)
}

// ByFile divides the reports into those of each file.
func ByFile(limits []replay.LimitReport) (files [][]replay.LimitReport) {
	for _, l := range limits {
		if OfFile(l) {
			files = append(files, nil)
		}
		if len(files) > 0 {
			files[len(files)-1] = append(files[len(files)-1], l)
		}
	}
	return files
}

// Bill says what the units of a log cost, each at a price, and which part of it would have been refused: of each rule whose costs come
// from an attribute, and of all requests if there is none.
func Bill(limits []replay.LimitReport, price float64) (said []string) {
	if price <= 0 || len(limits) == 0 {
		return nil
	}
	tell := func(l replay.LimitReport, where string) {
		unit := strings.TrimSuffix(cmp.Or(l.Unit, "requests"), "s")
		said = append(said, fmt.Sprintf("At %s for each %s, the log%s comes to %s, and %s of it would have been refused: the bill would be %s.",
			strconv.FormatFloat(price, 'f', -1, 64), unit, where,
			Money(float64(l.Admitted+l.Refused)*price), Money(float64(l.Refused)*price), Money(float64(l.Admitted)*price)))
	}
	for _, l := range limits[1:] {
		if l.Unit != "" && !l.Beside && l.Admitted+l.Refused > 0 {
			tell(l, " under rule "+l.Rule)
		}
	}
	if len(said) == 0 {
		tell(limits[0], "")
	}
	return said
}

// Money returns an amount with two digits behind the point: 1,234.50.
func Money(amount float64) string {
	whole := fmt.Sprintf("%.2f", amount)
	digits, cents, _ := strings.Cut(whole, ".")
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits + "." + cents
}
