package plain

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"
	_ "time/tzdata" // the program knows every zone, even where the system has no zone data
)

// zoneNames are the names of the zones in the data of the program, one a line.
//
//go:embed zones.txt
var zoneNames string

// zoneHint is the hint for a quota in an unknown zone.
const zoneHint = "a zone has the IANA name of a place, such as Europe/Paris, or is UTC"

// The ends of the library's errors of a zone, which are for programs without zone data, and for any text.
const (
	endOfUnknown = `; a program without zone data needs import _ "time/tzdata"`
	endOfNoName  = ", such as Europe/Paris"
)

// withNearestZone ends the error of an unknown zone with the nearest one, and that of a text that no zone can have as its name
// with one that differs by a third of it at most.
func withNearestZone(line string) string {
	before, unknown := strings.CutSuffix(line, endOfUnknown)
	noName := false
	if !unknown {
		before, noName = strings.CutSuffix(line, endOfNoName)
	}
	words := strings.Split(before, `"`)
	if !unknown && !noName || len(words) < 3 {
		return line
	}
	zone, differ := nearestZone(words[len(words)-2])
	if noName && 3*differ > len(words[len(words)-2]) {
		return line
	}
	return before + ": did you mean " + zone + "?"
}

// nearestZone returns the zone whose name is nearest to a text, and the number of different letters.
func nearestZone(text string) (zone string, differ int) {
	text = strings.ToLower(text[:min(len(text), 64)])
	zone = slices.MinFunc(strings.Fields(zoneNames), func(a, b string) int {
		return cmp.Or(distance(text, a)-distance(text, b), len(a)-len(b))
	})
	return zone, distance(text, zone)
}

// distance returns how many letters have to change to make a name of a text. The name of the place alone, or one without its
// case, differs less than another place.
func distance(text, name string) int {
	name = strings.ToLower(name)
	whole := edits(text, name)
	if place := name[strings.LastIndexByte(name, '/')+1:]; !strings.Contains(text, "/") {
		return min(whole, edits(strings.ReplaceAll(text, " ", "_"), place))
	}
	return whole
}

// edits returns the number of letters to insert, to leave out or to replace.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
