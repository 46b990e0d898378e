package stored

import (
	"strconv"
	"strings"
)

// Versions before format 5 gave a state another key: in format 2 PREFIX:2:{LANE}:RULE NUL CODE NUL KEY, one for each limit,
// and in formats 3 and 4 PREFIX:{LANE}:RULE NUL CODE NUL KEY, without a code for the states of fixed size. Beside such a
// version, this one would admit everything a second time. So the engine also looks for these keys with its first
// decisions, and with many more after each that it finds. A decision on a state that such a version holds is an error.

// setEarlier notes where earlier versions kept the states of a rule, of which these are the names by enginekit.
func setEarlier(limits []Limit, states []string) {
	var fixed []FormerKey
	for i := range limits {
		l, fields := &limits[i], strings.Split(states[i], "\x00")
		own := fields[0] + "\x00" + l.earlierCode(fields[2]) + "\x00"
		switch {
		case l.Kind == KindNone:
		case l.Kind.Fixed():
			fixed = append(fixed, FormerKey{Second: true, State: own})
		default:
			l.Earlier = []FormerKey{{State: own}, {Second: true, State: own}}
		}
	}
	rule, _, _ := strings.Cut(states[0], "\x00")
	fixed = append(fixed, FormerKey{State: rule + "\x00\x00"})
	for i := range limits {
		if l := &limits[i]; l.Kind.Fixed() {
			l.Earlier = fixed
		}
	}
}

func (l *Limit) earlierCode(ordinal string) string {
	code := l.Letter
	if l.Kind > KindLeaky && l.Kind != KindSlots {
		code += strconv.FormatInt(l.Period, 36)
	}
	if l.Origin != 0 {
		code += "+" + strconv.FormatInt(l.Origin, 36)
	}
	if ordinal != "0" {
		code += "." + ordinal
	}
	return code
}
