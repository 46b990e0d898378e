package accesslog

import (
	"slices"
	"strings"
)

// choose finds the variables with the time and the client: those that most of the lines have. It returns false if the
// lines lack what makes the format.
func (l *layout) choose(lines [][]byte) bool { return l.pick(l.counts(lines)) }

// chooseNamed finds the variables with the time and the client among columns that have just been named.
func (l *layout) chooseNamed() {
	named := slices.Repeat([]int{1}, len(l.names))
	l.pick(named, named)
}

// counts returns how many lines have each variable, and how many have a time there that can be read.
func (l *layout) counts(lines [][]byte) (present, readable []int) {
	present, readable = make([]int, len(l.names)), make([]int, len(l.names))
	for _, line := range lines {
		l.split.split(line, l.values)
		for i, v := range l.values {
			if v != nil {
				present[i]++
			}
		}
		if date, clock := l.at("date"), l.at("time"); l.format.shape == byJSON && !l.paired && min(date, clock) >= 0 {
			_, why := parseTime(l.join(l.values[date], l.values[clock]))
			l.paired = why == ""
		}
		for _, name := range l.format.timeList() {
			if i := l.at(name); i >= 0 && l.values[i] != nil {
				if _, why := parseTimeOf(name, l.values[i]); why == "" {
					readable[i]++
				}
			}
		}
	}
	for i, n := range present {
		readable[i] = sampleLines*readable[i] + n // of several that are read as often, or never, the one that is there
	}
	return present, readable
}

func (l *layout) pick(present, readable []int) bool {
	l.chosen = chosen{}
	c := &l.chosen
	c.time = l.most(l.format.timeList(), readable)
	if (c.time == "date" || c.time == "time") && l.hasBoth("date", "time") && readable[l.at(c.time)] <= sampleLines {
		c.time, c.clock = "date", "time" // as neither can be read alone
	}
	if c.client = l.most(l.format.clientList(), present); l.lack(c.client, present) {
		c.client = ""
	}
	c.forwarded = l.most(l.format.forwardedList(), present)
	if c.forwarded == c.client || l.lack(c.forwarded, present) {
		c.forwarded = ""
	}
	if l.at(l.format.took) >= 0 {
		c.took = l.format.took
	}
	for _, name := range append(strings.Fields(l.format.needs), c.time) {
		if i := l.at(name); i < 0 || l.format.shape == byJSON && present[i] == 0 {
			return false
		}
	}
	return l.format.client == "" || l.format.client == "-" || c.client != "" && present[l.at(c.client)] > 0
}

// most returns the first variable, unless a later one counts more than twice as often, or the empty text if there is none: the
// first ones are those that the server says, and the last ones those that a proxy may have.
func (l *layout) most(names []string, counts []int) (best string) {
	for _, name := range names {
		if i := l.at(name); i >= 0 && (best == "" || counts[i] > 2*counts[l.at(best)]) {
			best = name
		}
	}
	return best
}

// at returns the place of a variable, or -1. The empty text names none, even if a column has no name.
func (l *layout) at(name string) int {
	if name == "" {
		return -1
	}
	return slices.Index(l.names, name)
}

// lack reports whether no line has a variable. Those of patterns and columns are there by their names.
func (l *layout) lack(name string, present []int) bool {
	i := l.at(name)
	return l.format.shape == byJSON && i >= 0 && present[i] == 0
}

// hasBoth reports whether two variables make a time together: columns by their names, and fields of objects if a line has one.
func (l *layout) hasBoth(first, second string) bool {
	return min(l.at(first), l.at(second)) >= 0 && (l.inColumns() || l.paired)
}

// bind finds the places of the chosen variables and of the wanted fields.
func (l *layout) bind(wanted []field) {
	c := &l.chosen
	c.timeAt, c.clockAt, c.tookAt = l.at(c.time), l.at(c.clock), l.at(c.took)
	c.peerAt, c.forwardedAt = l.peerPlaces(), l.forwardedPlaces()
	c.linesAt, c.userAt = l.at(forwardedLines), -1
	if l.format.shape == byPattern {
		c.userAt = l.at("remote_user")
	}
	l.slots = make([]binding, len(wanted))
	for slot, w := range wanted {
		b := binding{kind: w.kind, missing: missing(w.name)}
		for _, s := range l.format.sourcesOf(w) {
			if i := l.at(s.name); i >= 0 {
				b.sources = append(b.sources, placed{i, s.take, l.at(s.query)})
			}
		}
		l.slots[slot] = b
	}
}

// peerPlaces returns the places of the client. If the first lines of objects have none, a later line may have any.
func (l *layout) peerPlaces() []int {
	if l.format.shape == byJSON && l.chosen.client == "" {
		return l.places(l.format.clientList())
	}
	return l.places([]string{l.chosen.client})
}

// forwardedPlaces returns the places of a list of addresses that proxies have forwarded. Objects leave out the header fields
// that a request lacks, so the first lines do not tell which fields the later ones have.
func (l *layout) forwardedPlaces() []int {
	if l.format.shape == byJSON {
		return l.places(slices.DeleteFunc(slices.Clone(l.format.forwardedList()), func(name string) bool { return name == l.chosen.client }))
	}
	return l.places([]string{l.chosen.forwarded})
}

// places returns the places of those variables that there are.
func (l *layout) places(names []string) (places []int) {
	for _, name := range names {
		if i := l.at(name); i >= 0 {
			places = append(places, i)
		}
	}
	return places
}
