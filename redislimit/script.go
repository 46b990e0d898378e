package redislimit

import (
	"crypto/fips140"
	"crypto/sha1"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/rueidis"
)

// The parts of the script. head.lua defines its input and its reply, loop.lua goes through the batch, and each other
// part is one function.
var (
	//go:embed script/head.lua
	scriptHead string
	//go:embed script/loop.lua
	scriptLoop string
	//go:embed script/many.lua
	scriptMany string
	//go:embed script/bucket.lua
	scriptBucket string
	//go:embed script/window.lua
	scriptWindow string
	//go:embed script/cycle.lua
	scriptCycle string
	//go:embed script/fixed.lua
	scriptFixed string
	//go:embed script/alone.lua
	scriptAlone string
	//go:embed script/alone_keys.lua
	scriptAloneKeys string
	//go:embed script/alone_write.lua
	scriptAloneWrite string
	//go:embed script/alone_cell.lua
	scriptAloneCell string
	//go:embed script/alone_part.lua
	scriptAlonePart string
	//go:embed script/alone_cell_keys.lua
	scriptAloneCellKeys string
	//go:embed script/cell.lua
	scriptCell string
	//go:embed script/several.lua
	scriptSeveral string
	//go:embed script/change.lua
	scriptChange string
	//go:embed script/broken.lua
	scriptBroken string
	//go:embed script/glance.lua
	scriptGlance string
	//go:embed script/entries.lua
	scriptEntries string
	//go:embed script/log.lua
	scriptLog string
	//go:embed script/slots.lua
	scriptSlots string
	//go:embed script/upto.lua
	scriptUpTo string
	//go:embed script/identity.lua
	scriptIdentity string
	//go:embed script/line.lua
	scriptLine string
)

// sendable is the script as an engine sends it.
type sendable struct {
	source, hash string
	lua          *rueidis.Lua
}

// theScript is made with the first engine: joining the parts takes milliseconds, and many programs that import this
// package, such as most commands of weir, make none.
//
// The engine calls the script by its hash, and sends the text to a server that does not know it: rueidis does so
// itself, and sendBy does so for other clients. Redis names scripts by SHA-1, which protects nothing here, so FIPS 140
// mode need not refuse it.
var theScript = sync.OnceValue(func() (c sendable) {
	c.source = scriptText()
	fips140.WithoutEnforcement(func() {
		sum := sha1.Sum([]byte(c.source))
		c.hash = hex.EncodeToString(sum[:])
		c.lua = rueidis.NewLuaScript(c.source)
	})
	return c
})

// scriptText joins the parts. A part must cost nothing in a call that does not need it, not even the creation of its
// functions. So the script creates each part only if it occurs; many is kind 0.
func scriptText() string {
	var b strings.Builder
	b.WriteString(scriptHead)
	fmt.Fprintf(&b, "local function rarely(what)\nif what == SEVERAL then\n%send\nif what == BROKEN then\n%send\n%send\n", scriptSeveral, scriptBroken, scriptChange)
	for k, text := range []string{scriptMany, scriptBucket, scriptBucket, scriptWindow, scriptCycle, scriptLog, scriptSlots, scriptUpTo, scriptCell, scriptIdentity, "", scriptLine} {
		if text == "" {
			continue // the bit of long keys has no functions
		}
		fmt.Fprintf(&b, "if mask %% %d >= %d then\nlocal make = function()\n%send\nkinds[%d] = { make() }\nif mask >= %d then makers[%d] = make end\nend\n", 2<<k, 1<<k, fixed(kind(k), text), k, 1<<kindCell, k)
	}
	b.WriteString(scriptLoop)
	text := strings.NewReplacer("\nALONES\n", "\n"+alones(), "\nGLANCE\n", "\n"+pagedLines.ReplaceAllString(scriptGlance, ""), "\nPAGED_GLANCE\n", "\n"+pagedGlance(),
		"\nENTRIES\n", "\n"+scriptEntries).Replace(b.String())
	text = commentLines.ReplaceAllString(text, "")
	return scriptNames().ReplaceAllStringFunc(text, func(name string) string { return scriptValues[name] })
}

// fixed completes a kind with a state of fixed size.
func fixed(k kind, text string) string {
	read, body, found := split(k, text)
	if !found {
		return text
	}
	stored := storedAs(k)
	limited := "local fits, need = true, nil\nrepeat\n" + body + "until true\nreturn fits, need, " + stored.names + "\n"
	return read + strings.NewReplacer("LIMITED\n", limited, "BODY\n", body, "SEVERAL_LIMITS", strconv.Itoa(1<<kindCell)).Replace(stored.in(scriptFixed))
}

// split returns how the text of a kind reads the parameters, and how it decides. found is false for a kind whose state
// has no fixed size.
func split(k kind, text string) (read, body string, found bool) {
	if k == kindLeaky {
		text = strings.ReplaceAll(tokenLines.ReplaceAllString(text, ""), "LAST", "told")
	} else {
		text = strings.ReplaceAll(leakyLines.ReplaceAllString(text, ""), "LAST", "at")
	}
	return strings.Cut(text, "\nLIMIT\n")
}

// stored describes how a state of fixed size is stored: the bytes of the head of a value that holds it alone, and of all
// of that value; how many numbers it has, their format and their names; and the value of a new key, without a head.
type stored struct{ named, length, count, numbers, names, initial, fresh string }

func storedAs(k kind) stored {
	none, number := math.Inf(-1), binary.LittleEndian.AppendUint32
	whole := number(number(doubles(nil, 0, none), 0), 1) // the expiry, w, f and d of a new bucket
	return map[kind]stored{
		kindBucket: {"4", "44", "5", "dI4I4dd", "w, f, d, u, at", "-inf, 0, 1, 1, -inf", literal(make([]byte, 4), doubles(whole, 1, none))},
		kindLeaky:  {"4", "52", "6", "dI4I4ddd", "w, f, d, u, at, told", "-inf, 0, 1, 1, -inf, -inf", literal(make([]byte, 4), doubles(whole, 1, none, none))},
		kindWindow: {"12", "44", "3", "ddd", "a, b, c", "-inf, 0, 0", literal(make([]byte, 12), doubles(nil, 0, none, 0, 0))},
		kindCycle:  {"20", "52", "3", "ddd", "a, b, c", "-inf, 0, 0", literal(make([]byte, 20), doubles(nil, 0, none, 0, 0))},
	}[k]
}

// in replaces the names of the description in a text.
func (s stored) in(text string) string {
	return strings.NewReplacer("NAMED", s.named, "LENGTH", s.length, "COUNT", s.count, "NUMBERS", s.numbers, "NAMES", s.names, "INITIAL", s.initial, "FRESH", s.fresh).Replace(text)
}

// commentLines are for readers of the parts alone: a server reads the text before its first call.
var commentLines = regexp.MustCompile(`(?m)^ *--.*\n`)

// pagedLines and wholeLines are the lines of script/glance.lua for a value that was not read, and for one that was.
var (
	pagedLines = regexp.MustCompile(`(?m)^.* -- PAGED\n`)
	wholeLines = regexp.MustCompile(`(?m)^.* -- WHOLE\n`)
)

// pagedGlance returns the searches and glance of script/glance.lua for a value that was not read: they read each entry
// from Redis.
func pagedGlance() string {
	_, text, _ := strings.Cut(scriptGlance, "-- after returns")
	text, _, _ = strings.Cut(text, "-- decide is")
	parameters := regexp.MustCompile(`(?s)-- The parameters of the part.*?(-- glance makes)`)
	text = parameters.ReplaceAllString("-- after returns"+text, "$1")
	text = regexp.MustCompile(`unpack_\(([^,()]+), s\b`).ReplaceAllString(text, "peek($1, s")
	text = wholeLines.ReplaceAllString(text, "")
	return `local function peek(format, s, pos)
  pos = pos or 1
  return unpack_(format, call('GETRANGE', s.name, string.format('%.0f', pos - 1), string.format('%.0f', pos + 47)))
end
` + strings.ReplaceAll(text, "#s", "s.bytes")
}

// leakyLines are the lines of script/bucket.lua for a leaky bucket alone, and tokenLines those for a token bucket alone.
var (
	leakyLines = regexp.MustCompile(`(?m)^.* -- LEAKY\n`)
	tokenLines = regexp.MustCompile(`(?m)^.* -- TOKEN\n`)
)

// scriptValues are the values of names in the script.
var scriptValues = map[string]string{
	"PEEK": number(opPeek), "TAKE": number(opTake), "RECORD": number(opRecord), "RESET": number(opReset), "UNDO": number(opUndo), "AGAIN": number(opAgain), "UPTO": number(opUpTo), "RENEW": number(opRenew), "WHEN": number(opWhen), "BOOK": number(opBook), "WITHDRAW": number(opWithdraw), "IDENTIFIED": number(opIdentified), "IDENTITY": number(int64(scriptIdentityBit)),
	"LEAKY": number(int64(kindLeaky)), "FITTING": number(int64(scriptUpToBit)), "LOG": number(int64(kindLog)), "SLOTS": number(int64(kindSlots)), "CELL": number(int64(kindCell)), "SEVERAL": "1", "CHANGE": "2", "BROKEN": "3", "LINES": number(int64(scriptLinesBit)),
	"LINE": number(opLine), "FREES": number(int64(lineFrees)), "ASKS": number(int64(lineAsks)), "CALLS": number(int64(lineCalls)), "BOOKS": number(int64(lineBooks)),
	"TURN": number(int64(outcomeTurn)), "DRY": number(int64(outcomeDry)), "STANDS": number(int64(outcomeStands)), "HOLDS": number(int64(outcomeHolds)), "MOST_PROCESSES": number(int64(mostProcesses)),
	"EARLIER": number(int64(1) << earlierBit), "LONG_KEYS": number(int64(1) << longKeysBit), "LONG_BYTES": number(int64(longBytes)),
	"VERSION": letter(formatByte), "FOREIGN": letter(foreignByte), "FORM": number(int64(formatByte)), "STRANGERS": number(int64(mostStrangers)),
	"REFUSED": letter(flagRefused), "ADMITTED": letter(flagAdmitted), "UNREADABLE": letter(flagUnreadable), "LATER": letter(replyLater[0]),
	"MOST_UNITS": number(int64(mostUnits)), "MOST_EXTRA": number(int64(mostExtra)), "MOST_KEPT": number(int64(mostKept)), "MOST_AHEAD": number(int64(mostAhead)),
	"MOST_WORK": number(int64(mostListed)), "MOST_LOOSENED": number(int64(mostLoosened)), "MOST_MOVED": number(int64(mostMoved)), "MOST_SMALL": number(int64(mostSmall)),
}

// scriptNames finds the names of scriptValues.
func scriptNames() *regexp.Regexp {
	return regexp.MustCompile(`\b(` + strings.Join(slices.Collect(maps.Keys(scriptValues)), "|") + `)\b`)
}

func number[N op | int64](n N) string { return strconv.FormatInt(int64(n), 10) }

// letter returns a Lua string of one byte.
func letter(b byte) string { return literal([]byte{b}) }

// literal returns a Lua string of bytes.
func literal(parts ...[]byte) string {
	var s strings.Builder
	for _, b := range slices.Concat(parts...) {
		fmt.Fprintf(&s, `\%03d`, b)
	}
	return "'" + s.String() + "'"
}
