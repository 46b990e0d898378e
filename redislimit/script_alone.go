package redislimit

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// alones returns what makes a single decision on limits with states of fixed size, and one that is repeated for other
// keys: for each kind, and for several limits with one value. It has hardly any functions, whose creation takes longer
// than such a decision.
func alones() string {
	var one, parts string
	for _, k := range []kind{kindBucket, kindLeaky, kindWindow, kindCycle} {
		one += alone(k, scriptAlone) + alone(k, writing(scriptAloneKeys, "'0'"))
		if k != kindLeaky { // a queue is the only limit of its rule
			parts += alone(k, scriptAlonePart)
		}
	}
	several := strings.ReplaceAll(scriptAloneCell, "KINDS\n", parts) + besideEachOther(writing(scriptAloneCellKeys, "place"))
	cells := strings.NewReplacer("CELLS_END", strconv.Itoa(1<<kindCell+1<<kindLog), "CELLS", strconv.Itoa(1<<kindCell), "BUCKET", strconv.Itoa(int(kindBucket)))
	return one + cells.Replace(several)
}

// writing completes a frame with the writes of all its keys. place is that of the numbers of a value that keeps its expiry.
func writing(frame, place string) string {
	return strings.ReplaceAll(frame, "WRITE\n", strings.ReplaceAll(scriptAloneWrite, "PLACE", place))
}

// alone puts what a kind reads and decides into a frame.
func alone(k kind, frame string) string {
	read, body, _ := split(k, textOf(k))
	parameters := strings.NewReplacer("local function read(pos)\n", "", "  return pos\nend", "").Replace(read) + "\n"
	return strings.NewReplacer("PARAMETERS\n", parameters, "BODY\n", body, "ALONE", strconv.Itoa(1<<k), "KIND", strconv.Itoa(int(k)), "UNCHANGED", unchanged(k)).Replace(storedAs(k).in(frame))
}

func textOf(k kind) string {
	return map[kind]string{kindBucket: scriptBucket, kindLeaky: scriptBucket, kindWindow: scriptWindow, kindCycle: scriptCycle}[k]
}

// unchanged returns whether a state needs no conversion to the rate of its limit.
func unchanged(k kind) string {
	if k == kindBucket || k == kindLeaky {
		return "(w < now or d == den and u == unit)"
	}
	return "true"
}

// mostBeside is how many limits script/alone_cell_keys.lua decides at most.
const mostBeside = 3

// besideEachOther completes script/alone_cell_keys.lua, in which several limits need their parameters and states at the
// same time. So each has its own text, in which their names are places: p2_1 is the second parameter of the first limit,
// and s1_3 the first number of the state of the third. Few locals keep every call of the script fast.
func besideEachOther(frame string) string {
	var parameters []string
	var helpers, reads, decisions, fresh strings.Builder
	for j := 1; j <= mostBeside; j++ {
		for _, k := range []kind{kindBucket, kindWindow, kindCycle} {
			own := besideOf(k, j)
			fmt.Fprintf(&reads, "if count >= %d and not kind%d and string.byte(args, pos) == %d then\nkind%d, pos = %d, pos + 1\n%send\n", j, j, k, j, k, own.read)
			fmt.Fprintf(&decisions, "if kind%d == %d then\n%send\n", j, k, own.decision)
			parameters = append(parameters, own.parameters...)
			if j == 1 {
				helpers.WriteString(own.helpers)
			}
		}
		fmt.Fprintf(&fresh, "s1_%d, s2_%d, s3_%d, s4_%d, s5_%d = -inf, 0, kind%d == BUCKET and 1 or 0, 1, -inf\n", j, j, j, j, j, j)
	}
	slices.Sort(parameters)
	fmt.Fprintf(&helpers, "\nlocal %s\n", strings.Join(slices.Compact(parameters), ", "))
	return strings.NewReplacer(
		"MOST", strconv.Itoa(mostBeside), "PARAMETERS\n", helpers.String()+reads.String(), "LIMITS\n", decisions.String(), "STATES", statesOf(5, 5, 5), "FRESH\n", fresh.String(),
		"WIDE_WIDE", statesOf(5, 5, 5), "WIDE_NARROW", statesOf(5, 3, 5), "NARROW_WIDE", statesOf(3, 5, 5), "NARROW_NARROW", statesOf(3, 3, 5),
	).Replace(frame)
}

// statesOf returns the names of the numbers of states.
func statesOf(widths ...int) string {
	var names []string
	for j, width := range widths {
		for i := range width {
			names = append(names, nameOf("s", i, j+1))
		}
	}
	return strings.Join(names, ", ")
}

func nameOf(of string, i, j int) string { return fmt.Sprintf("%s%d_%d", of, i+1, j) }

// beside is the text of the j-th limit of several: the names of its parameters; functions without a state; and how it
// reads the parameters, and decides if no limit before it refuses.
type beside struct {
	parameters              []string
	helpers, read, decision string
}

func besideOf(k kind, j int) (b beside) {
	text, body, _ := split(k, textOf(k))
	declarations, text, _ := strings.Cut(text, "local function read(pos)\n")
	read, helpers, _ := strings.Cut(text, "  return pos\nend")
	places := map[string]string{"fits": fmt.Sprint("fits", j), "need": fmt.Sprint("need", j)}
	for i, name := range strings.Split(storedAs(k).names, ", ") {
		places[name] = nameOf("s", i, j)
	}
	for _, line := range declaredNames.FindAllStringSubmatch(declarations, -1) {
		for _, name := range strings.Split(line[1], ", ") {
			places[name] = nameOf("p", len(b.parameters), j)
			b.parameters = append(b.parameters, places[name])
		}
	}
	numbered := func(text string) string {
		return luaNames.ReplaceAllStringFunc(text, func(name string) string { return cmp.Or(places[name], name) })
	}
	refused := []string{"", " or not fits1", " or not (fits1 and fits2)"}[j-1]
	decision := "same, fits, need = same and " + unchanged(k) + ", true, nil\nrepeat\nif not same" + refused + " then break end\n" + body + "until true\nif fits == nil then same = false end\n"
	return beside{b.parameters, helpers, numbered(read), numbered(decision)}
}

// luaNames finds the names in a text, and declaredNames those that a line declares.
var (
	luaNames      = regexp.MustCompile(`[a-zA-Z_][a-zA-Z_0-9]*`)
	declaredNames = regexp.MustCompile(`(?m)^local ([a-zA-Z, ]*[a-zA-Z])(?: --.*)?$`)
)
