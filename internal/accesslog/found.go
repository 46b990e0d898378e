package accesslog

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Found says how a log is read.
type Found struct {
	Log    string `json:"log"`
	Format string `json:"format"`
	Why    string `json:"why"`
	Time   string `json:"time"`   // the variable that is taken for the time, its resolution, and which end of the request it stamps
	Client string `json:"client"` // the variable that is taken for the client
}

// Found returns how each log was read.
func (r *Reader) Found() []Found { return slices.Clone(r.found) }

func fits(f *format, s score, lines int) string {
	how := "fits"
	if f.told {
		how = "told, and fits"
	}
	switch {
	case s.whole == lines:
		return fmt.Sprintf("%s all of the first %s", how, count(lines))
	case s.whole > 0:
		return fmt.Sprintf("%s %d of the first %s", how, s.whole, count(lines))
	}
	return fmt.Sprintf("%s the beginning of %d of the first %s", how, s.times, count(lines))
}

func count(lines int) string {
	if lines == 1 {
		return "1 line"
	}
	if lines >= 1000 {
		return fmt.Sprintf("%d,%03d lines", lines/1000, lines%1000)
	}
	return fmt.Sprintf("%d lines", lines)
}

func (l *layout) found(log string) Found {
	f := Found{Log: log, Format: l.format.name, Why: l.fits, Time: l.timeText(), Client: l.clientText()}
	if l.unwrapper != nil {
		f.Format += " in " + l.wrapper.name
	}
	return f
}

func (l *layout) variable(name string) string {
	if l.format.shape == byPattern {
		return "$" + name
	}
	return name
}

func (l *layout) timeText() string {
	if l.chosen.time == "" {
		return "none"
	}
	text := []string{l.variable(l.chosen.time)}
	if l.chosen.clock != "" {
		text[0] += " and " + l.variable(l.chosen.clock)
	}
	text = append(text, "in "+stepText(l.step))
	switch l.format.stamp {
	case Starts:
		text = append(text, "as a request begins")
	case Ends:
		text = append(text, "as a request ends")
	}
	if l.zoneless && l.format.shape != byFields {
		text = append(text, "without a zone and so read as UTC")
	}
	return strings.Join(text, ", ")
}

func stepText(step time.Duration) string {
	switch {
	case step >= time.Second:
		return "whole seconds"
	case step >= time.Millisecond:
		return "milliseconds"
	case step >= time.Microsecond:
		return "microseconds"
	}
	return "nanoseconds"
}

func (l *layout) clientText() string {
	c := &l.chosen
	switch {
	case c.client == "" && len(c.peerAt) > 0:
		return "none in the first lines"
	case c.client == "":
		return "none"
	case c.forwarded == "" && l.clients.choose == nil:
		return l.variable(c.client)
	case c.forwarded == "" && (l.format.shape == byJSON || l.format.shape == byFields):
		return l.variable(c.client) + ", or an address that a trusted proxy has forwarded, which none of the first lines has"
	case c.forwarded == "":
		return l.variable(c.client) + " alone, because the format has no field for an address that a trusted proxy has forwarded"
	case l.clients.choose == nil && l.format.front:
		return "none: no proxy is trusted that has forwarded " + l.variable(c.forwarded)
	case l.clients.choose == nil:
		return l.variable(c.client) + ", because no proxy is trusted that has forwarded " + l.variable(c.forwarded)
	}
	return l.variable(c.client) + ", or an address of " + l.variable(c.forwarded) + " if a trusted proxy has forwarded it"
}
