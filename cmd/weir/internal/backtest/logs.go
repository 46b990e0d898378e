package backtest

import (
	"strconv"
	"time"

	"github.com/weirflow/weir/internal/accesslog"
	"github.com/weirflow/weir/internal/replay"
)

// DefaultLongest is how long a request is under way at most, where a log does not say.
const DefaultLongest = time.Second

// Logs fill a Traffic from access logs.
type Logs struct {
	*accesslog.Reader
	traffic *Traffic
	longest time.Duration // of a request, where a log does not say
	client  accesslog.Slot
	reads   bool // a rule reads the client, so a line without one says too little
	line    Line
	source  source
	who     subjects

	rule, key, cost, allowed, hashed accesslog.Slot // of a recording
}

// NewLogs returns the Logs that fill the traffic. A request whose duration the log does not say may have taken up to
// longest.
func NewLogs(traffic *Traffic, reader *accesslog.Reader, longest time.Duration) *Logs {
	l := &Logs{Reader: reader, traffic: traffic, longest: longest, client: reader.Want("ip"),
		rule: reader.Want("rule"), key: reader.Want("key"), cost: reader.Want("cost"), allowed: reader.Want("allowed"), hashed: reader.Want("hashed")}
	if l.who.subject = traffic.subject; l.who.attribute != "" {
		l.who.slots = slotsOf(reader, l.who.attribute)
	}
	l.source = source{slots: map[string][]accesslog.Slot{}, texts: map[string]string{}}
	for _, try := range traffic.tries {
		for _, name := range try.config.Mentions() {
			l.reads = l.reads || name == "client"
			if l.source.slots[name] == nil {
				l.source.slots[name] = slotsOf(reader, name)
			}
		}
	}
	l.source.slots["path"] = slotsOf(reader, "path") // that forms of it are made from
	return l
}

// Assume takes a host, and a port unless it is empty, for those of requests whose line names none.
func (l *Logs) Assume(host, port string) {
	l.source.given = map[string]string{"host": host, "header.host": host}
	if port != "" {
		l.source.given["port"] = port
	}
}

// Assumed reports whether a rule has read what Assume was given.
func (l *Logs) Assumed() bool { return l.source.assumed }

// slotsOf returns the fields that hold an attribute, the best first. A path is that of the whole target, because the rules cut off
// its query themselves.
func slotsOf(reader *accesslog.Reader, attribute string) []accesslog.Slot {
	switch attribute {
	case "path", "request_uri":
		return []accesslog.Slot{reader.Want("uri"), reader.Want("path")}
	case "port":
		return []accesslog.Slot{reader.Want("server_port"), reader.Want("port")}
	}
	return []accesslog.Slot{reader.Want(attribute)}
}

// Entry adds an entry of a log.
func (l *Logs) Entry(e *accesslog.Entry) (why string, err error) {
	if why := l.traffic.full(); why != "" {
		return why, nil
	}
	l.line = Line{}
	if rule, ok := e.Value(l.rule); ok {
		if key, ok := e.Value(l.key); ok {
			if allowed, ok := e.Value(l.allowed); ok {
				return l.recorded(e, rule, key, string(allowed) == "true")
			}
		}
	}
	client, ok := e.Value(l.client)
	if !ok && l.reads {
		return e.Why(l.client), nil
	}
	l.line.Client, l.line.Keyed = l.who.of(e, client)
	l.line.At, l.line.From, l.line.To = l.bounds(e)
	l.source.entry = e
	if l.source.subject, err = l.traffic.names.text(l.line.Client); err != nil {
		return "", err
	}
	l.line.Request = &l.source
	return "", l.traffic.Add(&l.line)
}

// recorded adds a line of a recording. Its stamp is read at once after the decision, and taken for the instant of it.
// Decisions that the microseconds between them change are counted as decided otherwise.
func (l *Logs) recorded(e *accesslog.Entry, rule, key []byte, allowed bool) (why string, err error) {
	if e.Twice() {
		return "is of a recording, and has a field twice", nil
	}
	text, _ := e.Value(l.cost)
	hashed, _ := e.Value(l.hashed)
	cost, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || cost < 0 {
		return "is of a recording, and has no cost that is a number from 0", nil
	}
	l.line = Line{At: e.Time, From: e.Time, To: e.Time, Client: key, Keyed: l.who.attribute != "", Recorded: &Recorded{l.source.text(rule), l.source.text(key), cost, allowed, string(hashed) == "true"}}
	return "", l.traffic.Add(&l.line)
}

// slack is how much longer a request may have taken than its line says, which servers round.
const slack = int64(time.Millisecond)

// bounds returns when the request of an entry is decided, and between which instants it was. A daemon decides between the beginning
// and the end of a request, near the beginning.
func (l *Logs) bounds(e *accesslog.Entry) (at, from, to int64) {
	took, told := e.Took()
	around := int64(took) + slack
	if !told {
		around = int64(l.longest)
	}
	at, from, to = e.Time, e.Time, e.Time+int64(e.Step)
	if e.Stamp != accesslog.Starts {
		at, from = e.Time-int64(took), e.Time-around
	}
	if e.Stamp != accesslog.Ends {
		to += around
	}
	return at, from, to
}

// source is an entry as the rules see it.
type source struct {
	slots   map[string][]accesslog.Slot
	entry   *accesslog.Entry
	subject string // whose request it is
	texts   map[string]string
	given   map[string]string // attributes of requests whose line lacks them
	assumed bool              // one of them was read
}

// Attribute returns the value of an attribute. An empty one is none, as formats of JSON write it.
func (s *source) Attribute(name string) (string, bool) {
	for _, slot := range s.slots[name] {
		if value, ok := s.entry.Value(slot); ok && len(value) > 0 {
			if string(value) == s.subject { // mostly a new text, which the names have already
				return s.subject, true
			}
			return s.text(value), true
		}
	}
	if given, ok := s.given[name]; ok && !s.has(name) {
		s.assumed = true
		return given, true
	}
	return "", false
}

// Lacks reports whether nobody says if the request had an attribute.
func (s *source) Lacks(name string) bool { return s.given[name] == "" && !s.has(name) }

// has reports whether the line says if the request had an attribute.
func (s *source) has(name string) bool {
	for _, slot := range s.slots[name] {
		if value, _ := s.entry.Value(slot); value != nil {
			return true
		}
	}
	return false
}

// The bounds of the values that are remembered, so that equal ones are one text: how many, and how long each is.
const (
	mostTexts   = 1 << 16
	longestText = 256
)

func (s *source) text(value []byte) string {
	if len(value) > longestText {
		return string(value)
	}
	if text, ok := s.texts[string(value)]; ok {
		return text
	}
	if len(s.texts) >= mostTexts {
		clear(s.texts)
	}
	text := string(value)
	s.texts[text] = text
	return text
}

// ReportRead is Report of the traffic that a reader has read, and says how it was read.
func (t *Traffic) ReportRead(reader *accesslog.Reader, o Options) (replay.Report, error) {
	reader.Leave(t.cut(reader.Span()))
	report, err := t.Report(o)
	report.Logs, report.LeftOut = reader.Found(), reader.LeftOut()
	report.Lines, report.Unparsed, report.Reasons = reader.Lines(), reader.Rejected(), reader.Reasons()
	return report, err
}
