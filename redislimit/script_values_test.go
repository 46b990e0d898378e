package redislimit

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The files of the script are Lua as they stand, so they hold numbers that Go has too.
func TestTheScriptHasTheNumbersOfGo(t *testing.T) {
	want := map[string]float64{
		"MOST_UNITS": mostUnits, "MOST_AHEAD": mostAhead, "MOST_WORK": mostListed, "MOST_EXTRA": mostExtra, "MOST_KEPT": mostKept,
		"MOST_LOOSENED": mostLoosened, "MOST_MOVED": mostMoved, "MOST_SMALL": mostSmall, "MOST_PROCESSES": mostProcesses,
		"LONG_BYTES": longBytes, "STRANGERS": mostStrangers, "VERSION": formatByte, "FOREIGN": foreignByte,
		"SHORT": formatByte + 1, "LONG": formatByte + 2, "NARROW": formatByte + 3, "MIDDLE": formatByte + 4, "WIDE": formatByte + 5,
		"REFUSED": flagRefused, "ADMITTED": flagAdmitted, "UNREADABLE": flagUnreadable, "LATER": float64(replyLater[0]),
		"TURN": outcomeTurn, "DRY": outcomeDry, "STANDS": outcomeStands, "HOLDS": outcomeHolds,
	}
	seen := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^ *local ([A-Z].*?) = (.*?)(?: --.*)?$`)
	for _, line := range declared.FindAllStringSubmatch(theScript().source, -1) {
		values := strings.Split(line[2], ", ")
		for i, name := range strings.Split(line[1], ", ") {
			number, ok := want[name]
			if !ok {
				continue
			}
			if got := luaNumber(values[i]); got != number {
				t.Errorf("%s is %s in the script, want %v", name, values[i], number)
			}
			seen[name] = true
		}
	}
	for name := range want {
		if !seen[name] {
			t.Errorf("the script has no %s", name)
		}
	}
}

// luaNumber returns a number, a power of two or a string of one byte.
func luaNumber(text string) float64 {
	text = strings.Trim(text, `'\`)
	base, exponent, power := strings.Cut(text, "^")
	number, err := strconv.ParseFloat(base, 64)
	if err != nil {
		return math.NaN()
	}
	if e, err := strconv.Atoi(exponent); power && err == nil {
		number = math.Pow(number, float64(e))
	}
	return number
}
