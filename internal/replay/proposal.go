package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir"
)

// Proposal is the tightest suggestion, or under a target in all one limit for all keys together.
//
// The tightest one gives one key the least within any hour, or any minute if the log is shorter than an hour, or any
// second if it is shorter than a minute. Among equal ones it is the one that refuses more requests, and then the first.
type Proposal struct {
	Limit string `json:"limit"`
	Form  string `json:"form,omitempty"` // of the suggestion
	// ForAll is set if all keys share the limit, which is then not among the suggestions.
	ForAll bool `json:"for_all,omitempty"`
	// Factor is how many times the number of the limit is what the log needs: 1, unless WithHeadroom made it larger than that of the
	// suggestion, whose limit is Tight.
	Factor float64 `json:"factor,omitempty"`
	Tight  string  `json:"tight,omitempty"`
	Why    string  `json:"why"`
}

func (s *search) propose(found Suggestions) *Proposal {
	switch {
	case s.requests == 0:
		return nil
	case found.Together != nil:
		return &Proposal{Limit: found.Together.Limit, ForAll: true, Why: fmt.Sprintf(
			"As one limit for all clients together it meets the target and refuses %s of %s requests. One client may use it up.", grouped(found.Together.Refused), grouped(s.requests))}
	case len(found.Limits) == 0:
		return nil
	}
	within, span := s.measureOfTightness()
	best := slices.MinFunc(found.Limits, func(a, b Suggestion) int {
		return cmp.Or(cmp.Compare(within(a), within(b)), cmp.Compare(b.Refused, a.Refused))
	})
	why := fmt.Sprintf("Of these limits it gives one client the least within any %s: %s.%s", span, grouped(within(best)), s.missed(best))
	return &Proposal{Limit: best.Limit, Form: best.Form, Factor: 1, Tight: best.Limit, Why: why}
}

// WithHeadroom makes the number of the proposed limit larger by a share of it, such as 0.3, rounded up. It leaves a limit for all.
func (s *Suggestions) WithHeadroom(share float64) error {
	p := s.Proposed
	if p == nil || p.ForAll || share == 0 {
		return nil
	}
	limit, err := weir.ParseLimit(p.Tight)
	if err != nil {
		return fmt.Errorf("replay: headroom: %w", err)
	}
	if number, ok := Enlarged(limit, 1+share); ok {
		p.Limit, _ = WithNumber(limit, number)
		p.Factor = 1 + share
	}
	return nil
}

// Reasons say why the limit is proposed, and how tight it is.
func (p *Proposal) Reasons() []string {
	switch tight := p.tightness(); {
	case tight == "":
		return []string{p.Why}
	case p.Factor == 1:
		return []string{p.Why, tight}
	default:
		return []string{tight, p.Why}
	}
}

// tightness says how tight the proposed limit is, or "" of a limit for all.
func (p *Proposal) tightness() string {
	switch {
	case p.ForAll || p.Tight == "":
		return ""
	case p.Factor == 1:
		return "It is as tight as this log allows: the most that was needed × 1.0. A busier day would be refused more."
	}
	return fmt.Sprintf("It has headroom: the most that was needed × %s, in place of %s.", strconv.FormatFloat(p.Factor, 'f', -1, 64), p.Tight)
}

// measureOfTightness returns what orders suggestions: what one key may take within the longest time that the log fills.
func (s *search) measureOfTightness() (within func(Suggestion) int64, span string) {
	switch {
	case s.span() >= uint64(time.Hour):
		return func(l Suggestion) int64 { return l.In1h }, "hour"
	case s.span() >= uint64(time.Minute):
		return func(l Suggestion) int64 { return l.In1m }, "minute"
	}
	return func(l Suggestion) int64 { return l.In1s }, "second"
}

// missed says what the next number would have done.
func (s *search) missed(l Suggestion) string {
	if l.Next == nil {
		return ""
	}
	what := "count"
	if strings.HasSuffix(l.Form, "burst N") {
		what = "burst"
	}
	text := fmt.Sprintf(" With a %s of %s, ", what, grouped(l.Next.Number))
	if s.target.kind == refuseRequests {
		return text + fmt.Sprintf("it would refuse %s of %s requests.", grouped(l.Next.Refused), grouped(s.requests))
	}
	return text + fmt.Sprintf("it would refuse something to %s of %s clients.", grouped(int64(l.Next.KeysRefused)), grouped(int64(len(s.totals))))
}

// bounds names the figure that the target bounds, as in the JSON of a trade-off.
func (t Target) bounds() string {
	return [...]string{refuseRequests: "refused", refuseClients: "keys_refused", spareClients: "keys_refused", admitInAll: "peak"}[t.kind]
}

// notes say what the figures do not.
func (s *search) notes(found Suggestions, leftOut []string) (notes []string) {
	keys := int64(len(s.totals))
	switch {
	case s.requests == 0:
		return []string{"The log has no requests."}
	case s.target.kind == admitInAll && len(found.Limits) == 0:
		notes = append(notes, "No limit for each client meets the target, because too many clients ask at once.")
	case s.target.kind == refuseRequests && s.bound == 0:
		notes = append(notes, s.tooFew(s.requests, "request"))
	case s.target.kind == refuseClients && s.bound == 0:
		notes = append(notes, s.tooFew(keys, "client"))
	case s.target.kind == spareClients && s.bound == 0:
		notes = append(notes, fmt.Sprintf("%s of %s clients, rounded up, are all of them: these limits refuse nothing.", s.target.percent, grouped(keys)))
	}
	if s.target.kind == refuseRequests && s.varied && s.bound > 0 {
		notes = append(notes, "Requests differ in cost, so a number below the next smaller one may meet the target again: one large request that is refused leaves room for many small ones.")
	}
	if len(leftOut) > 0 {
		notes = append(notes, fmt.Sprintf("Windows longer than the log are not tried: %s.", strings.Join(leftOut, ", ")))
	}
	return notes
}

// tooFew says that the share of n things is less than one.
func (s *search) tooFew(n int64, thing string) string {
	least := (s.target.share.whole + s.target.share.part - 1) / s.target.share.part
	things := thing + "s"
	if n == 1 {
		things = thing
	}
	return fmt.Sprintf("%s of %s %s is less than one, and allows one only from %s %ss: these limits refuse nothing.", s.target.percent, grouped(n), things, grouped(int64(least)), thing)
}
