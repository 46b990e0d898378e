package report

import (
	"fmt"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/backtest"
	"github.com/weirflow/weir/cmd/weir/internal/explain"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/internal/replay"
)

// noun names the keys of a limit.
type noun struct{ one, many string }

func nounOf(key string) noun { return nounOfSubject(backtest.SubjectOfKey(key)) }

// nounOfSubject returns the noun for a subject of rules.
func nounOfSubject(subject string) noun {
	if subject == "" {
		subject = "key"
	}
	return noun{subject, subject + "s"}
}

func (n noun) count(of int64) string { return plain.Plural(of, n.one) }

// nameOf returns the name of a limit, of a rule, or of all rules of a file.
func nameOf(l replay.LimitReport) string {
	switch {
	case l.RuleReport == nil:
		return shorten(visible(l.Limit))
	case backtest.OfFile(l):
		return shorten(visible(l.File))
	}
	return ruleName(l) + " of " + shorten(visible(l.File))
}

// headline returns the answer in one sentence, and the next sentences for a reader.
func (p *replayPage) headline() (head string, lead []string) {
	limits := p.Result.Limits
	switch len(limits) {
	case 0:
		return p.headWithoutLimit(), nil
	case 1:
		head, lead = p.headOf(limits[0])
	case 2:
		head, lead = p.headOfTwo(limits[0], limits[1])
	default:
		head, lead = p.headOfMany("limits", limits)
	}
	if p.Suggestions != nil {
		lead = append([]string{p.proposal()}, lead...)
	}
	return head, lead
}

func (p *replayPage) headOf(l replay.LimitReport) (head string, lead []string) {
	if l.Refused == 0 {
		return fmt.Sprintf("With %s, nothing would have been refused: all %s of %s would have been admitted.", nameOf(l),
			plain.Plural(l.Admitted, "request"), p.who.count(int64(p.Result.Keys))), nil
	}
	head = fmt.Sprintf("With %s, %s of %s would have been refused, %s of requests.", nameOf(l), plain.Thousands(int64(l.KeysRefused)),
		p.who.count(int64(p.Result.Keys)), plain.Percent(l.Refused, l.Admitted+l.Refused))
	text := fmt.Sprintf("That is %s of %s.", plain.Thousands(l.Refused), plain.Plural(l.Admitted+l.Refused, "request"))
	if len(l.WorstKeys) > 0 {
		text += " " + p.mostRefused(l)
	}
	return head, []string{text}
}

// mostRefused describes the key with the most refusals.
func (p *replayPage) mostRefused(l replay.LimitReport) string {
	k := l.WorstKeys[0]
	return fmt.Sprintf("The most refused %s, %s, made %s, of which %s would have been refused.", p.one(k), p.names.of(k),
		plain.Plural(k.Admitted+k.Refused, "request"), plain.Thousands(k.Refused))
}

func (p *replayPage) headOfTwo(a, b replay.LimitReport) (head string, lead []string) {
	head = fmt.Sprintf("With %s, %s of %s would have been refused; with %s, %s.", nameOf(a), plain.Thousands(int64(a.KeysRefused)),
		p.who.count(int64(p.Result.Keys)), nameOf(b), plain.Thousands(int64(b.KeysRefused)))
	return head, []string{fmt.Sprintf("Of the requests, the first would have refused %s (%s), and the second %s (%s).", plain.Thousands(a.Refused),
		plain.Percent(a.Refused, a.Admitted+a.Refused), plain.Thousands(b.Refused), plain.Percent(b.Refused, b.Admitted+b.Refused))}
}

func (p *replayPage) headOfMany(what string, limits []replay.LimitReport) (head string, lead []string) {
	least, most := limits[0], limits[0]
	for _, l := range limits {
		if l.Refused < least.Refused {
			least = l
		}
		if l.Refused > most.Refused {
			most = l
		}
	}
	share := func(l replay.LimitReport) string { return plain.Percent(l.Refused, l.Admitted+l.Refused) }
	head = fmt.Sprintf("Of %d %s, %s would have refused least, %s of requests, and %s most, %s.", len(limits), what, nameOf(least), share(least), nameOf(most), share(most))
	return head, []string{fmt.Sprintf("The first would have refused %s of %s, the second %s.", plain.Thousands(int64(least.KeysRefused)),
		p.who.count(int64(p.Result.Keys)), plain.Thousands(int64(most.KeysRefused)))}
}

// meaning explains a limit in words; empty if the text is not that of a limit.
func meaning(text string) string {
	candidate, err := replay.ParseCandidate(text)
	if err != nil {
		return ""
	}
	var parts []string
	for _, limit := range candidate.Limits {
		e := explain.Of(limit)
		said := e.Burst
		if weir.Describe(limit).Rate.Count > 0 {
			said += " At most " + e.Worst
		}
		if len(candidate.Limits) > 1 {
			said = limit.String() + ": " + said
		}
		parts = append(parts, said)
	}
	return strings.Join(parts, " ")
}
