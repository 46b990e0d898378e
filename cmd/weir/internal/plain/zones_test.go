package plain

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
)

func TestTheNearestZoneIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"Europe/Pariz": "Europe/Paris", "europe/paris": "Europe/Paris", "America/NewYork": "America/New_York", "Tokyo": "Asia/Tokyo",
		"new york": "America/New_York", "Asia/Calcuta": "Asia/Calcutta", "utc": "UTC", "Europe/Kyiw": "Europe/Kyiv",
	} {
		if got, _ := nearestZone(text); got != want {
			t.Errorf("nearest to %q: got %s, want %s", text, got, want)
		}
	}
}

// Every name that a hint can give is one that a quota accepts.
func TestTheProgramKnowsEveryZoneThatItNames(t *testing.T) {
	names := strings.Fields(zoneNames)
	if len(names) < 500 {
		t.Fatalf("%d names, want those of all zones", len(names))
	}
	for _, name := range names {
		limit := weir.Quota{Count: 1, Unit: weir.Day, Zone: name}
		if _, _, ok := weir.Kit.CalendarWindow(limit, time.Unix(0, 0)); !ok {
			t.Errorf("%s is no zone of a quota", name)
		}
	}
}

// misspelt returns a name with one letter left out, added, replaced, of another case or swapped with the next.
func misspelt(random *rand.Rand, name string) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCXYZ_-/."
	at, letter := random.IntN(len(name)-1), letters[random.IntN(len(letters)):][:1]
	switch random.IntN(5) {
	case 0:
		return name[:at] + name[at+1:]
	case 1:
		return name[:at] + letter + name[at:]
	case 2:
		return name[:at] + letter + name[at+1:]
	case 3:
		return name[:at] + strings.ToUpper(name[at:at+1]) + strings.ToLower(name[at+1:])
	}
	return name[:at] + name[at+1:at+2] + name[at:at+1] + name[at+2:]
}

// levenshtein is the number of edits by its definition, with a memory.
func levenshtein(a, b string, known map[[2]int]int) int {
	if len(a) == 0 || len(b) == 0 {
		return len(a) + len(b)
	}
	at := [2]int{len(a), len(b)}
	if n, ok := known[at]; ok {
		return n
	}
	n := levenshtein(a[1:], b[1:], known)
	if a[0] != b[0] {
		n = 1 + min(n, levenshtein(a[1:], b, known), levenshtein(a, b[1:], known))
	}
	known[at] = n
	return n
}

// For every misspelt name, the error suggests the nearest zone that the program knows.
func TestAMisspeltZoneGetsTheNearest(t *testing.T) {
	names := strings.Fields(zoneNames)
	named, meant := 0, 0
	for seed := range randtest.Seeds(t, 400, 60) {
		random := rand.New(rand.NewPCG(seed, 0))
		name := names[random.IntN(len(names))]
		if !strings.Contains(name, "/") {
			continue
		}
		text := misspelt(random, name)
		_, err := weir.New(weir.Quota{Count: 1, Unit: weir.Day, Zone: text})
		if err == nil {
			continue // another zone
		}
		said := Message(err)
		_, after, ok := strings.Cut(said, ": did you mean ")
		got := strings.TrimSuffix(after, "?")
		if !ok || !slices.Contains(names, got) {
			t.Fatalf("%q for %s: %s, want a zone of the program", text, name, said)
		}
		if strings.Contains(text, "/") {
			near := func(zone string) int {
				return levenshtein(strings.ToLower(text), strings.ToLower(zone), map[[2]int]int{})
			}
			for _, other := range []string{name, names[random.IntN(len(names))], names[random.IntN(len(names))]} {
				if near(other) < near(got) {
					t.Errorf("%q: it names %s, and %s is nearer", text, got, other)
				}
			}
		}
		if named++; got == name {
			meant++
		}
	}
	if 10*meant < 8*named {
		t.Errorf("the zone that was meant is named for %d of %d misspelt ones, want 4 of 5", meant, named)
	}
}

func TestATextThatIsNoNameOfAZoneGetsANearOne(t *testing.T) {
	for text, want := range map[string]string{
		"Europe/París": ": did you mean Europe/Paris?", "right/Europe/Paris": ": did you mean Europe/Paris?", ":Europe/Paris": ": did you mean Europe/Paris?",
		"Local": "such as Europe/Paris", "+01:00": "such as Europe/Paris", "localtime": "such as Europe/Paris",
	} {
		_, err := weir.New(weir.Quota{Count: 1, Unit: weir.Day, Zone: text})
		if err == nil || !strings.HasSuffix(Message(err), want) {
			t.Errorf("%q: %v, want the end %s", text, Message(err), want)
		}
	}
}
