package wire

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/weirflow/weir/redislimit/internal/stored"
)

// The files of the script are Lua as they stand, so they hold numbers that Go has too.
func TestTheScriptHasTheNumbersOfGo(t *testing.T) {
	want := map[string]float64{
		"MOST_UNITS": stored.MostUnits, "MOST_AHEAD": stored.MostAhead, "MOST_WORK": stored.MostListed, "MOST_EXTRA": stored.MostExtra, "MOST_KEPT": stored.MostKept,
		"MOST_LOOSENED": stored.MostLoosened, "MOST_MOVED": stored.MostMoved, "MOST_SMALL": stored.MostSmall,
		"LONG_BYTES": stored.LongBytes, "STRANGERS": stored.MostStrangers, "VERSION": stored.FormatByte, "FOREIGN": foreignByte,
		"SHORT": stored.FormatByte + 1, "LONG": stored.FormatByte + 2, "NARROW": stored.FormatByte + 3, "MIDDLE": stored.FormatByte + 4, "WIDE": stored.FormatByte + 5,
		"REFUSED": flagRefused, "ADMITTED": FlagAdmitted, "UNREADABLE": flagUnreadable, "LATER": float64(ReplyLater[0]),
	}
	seen := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^ *local ([A-Z].*?) = (.*?)(?: --.*)?$`)
	for _, line := range declared.FindAllStringSubmatch(Script().Source, -1) {
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
