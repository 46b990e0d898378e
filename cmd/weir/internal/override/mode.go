package override

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Mode says whether a rule is a shadow or is enforced, in place of its file.
type Mode string

// The modes. Auto is that of the file.
const (
	Shadow   Mode = "shadow"
	Enforced Mode = "enforced"
	Auto     Mode = ""
)

// ModeOf is the mode of a rule, with the name of the caller that set it.
type ModeOf struct {
	Rule string `json:"rule"`
	Mode Mode   `json:"mode"`
	By   string `json:"by"`
}

// endless is the end of a mode, which has none. Versions of weir before modes take it for an entry that they cannot read.
var endless = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// SetMode keeps the mode of a rule, or none for Auto, and returns that before. Other daemons follow within a second.
func (t *Table) SetMode(ctx context.Context, m ModeOf) (before Mode, err error) {
	if m.Rule == "" || len(m.Rule) > maxText || strings.Contains(m.Rule, "~") {
		return Auto, fmt.Errorf("override: rule %q: want the name of a rule", m.Rule)
	}
	e := &Entry{Rule: m.Rule, Mode: m.Mode, Until: endless, By: m.By}
	at := e.target()
	at.mode = true
	if m.Mode == Auto {
		e = nil
	}
	was, err := t.change(ctx, at, e)
	if was != nil {
		before = was.Mode
	}
	if err == ErrUnknown { // it had none
		err = nil
	}
	return before, err
}

// Modes returns the modes of rules, in order.
func (t *Table) Modes() (modes []ModeOf) {
	if x := t.current.Load(); x != nil {
		for _, e := range x.modes {
			modes = append(modes, ModeOf{e.Rule, e.Mode, e.By})
		}
	}
	slices.SortFunc(modes, func(a, b ModeOf) int { return strings.Compare(a.Rule, b.Rule) })
	return modes
}
