package redislimit

import (
	"crypto/fips140"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"fmt"
	"maps"
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
	//go:embed script/cell.lua
	scriptCell string
	//go:embed script/several.lua
	scriptSeveral string
	//go:embed script/change.lua
	scriptChange string
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
	fmt.Fprintf(&b, "local function rarely(what)\nif what == SEVERAL then\n%send\nif what == LINES then\n%send\n%send\n", scriptSeveral, scriptLine, scriptChange)
	for k, text := range []string{scriptMany, scriptBucket, scriptBucket, scriptWindow, scriptCycle, scriptLog, scriptSlots, scriptUpTo, scriptCell, scriptIdentity} {
		fmt.Fprintf(&b, "if mask %% %d >= %d then\nlocal make = function()\n%send\nkinds[%d] = { make() }\nif mask >= %d then makers[%d] = make end\nend\n", 2<<k, 1<<k, fixed(kind(k), text), k, 1<<kindCell, k)
	}
	b.WriteString(scriptLoop)
	text := strings.NewReplacer("\nGLANCE\n", "\n"+pagedLines.ReplaceAllString(scriptGlance, ""), "\nPAGED_GLANCE\n", "\n"+pagedGlance(),
		"\nENTRIES\n", "\n"+scriptEntries).Replace(b.String())
	return scriptNames().ReplaceAllStringFunc(text, func(name string) string { return scriptValues[name] })
}

// fixed completes a kind with a state of fixed size: how it is stored, and the bytes of the head of a value that holds it
// alone, of all of that value, and of its numbers.
func fixed(k kind, text string) string {
	if k == kindLeaky {
		text = strings.ReplaceAll(tokenLines.ReplaceAllString(text, ""), "LAST", "told")
	} else {
		text = strings.ReplaceAll(leakyLines.ReplaceAllString(text, ""), "LAST", "at")
	}
	before, body, found := strings.Cut(text, "\nLIMIT\n")
	if !found {
		return text
	}
	values := map[kind][6]string{
		kindBucket: {"4", "44", "5", "dI4I4dd", "w, f, d, u, at", "0, 1, 1, -inf"},
		kindLeaky:  {"4", "52", "6", "dI4I4ddd", "w, f, d, u, at, told", "0, 1, 1, -inf, -inf"},
		kindWindow: {"12", "44", "3", "ddd", "a, b, c", "0, 0"},
		kindCycle:  {"20", "52", "3", "ddd", "a, b, c", "0, 0"},
	}[k]
	limited := "local fits, need = true, nil\nrepeat\n" + body + "until true\nreturn fits, need, " + values[4] + "\n"
	return before + strings.NewReplacer("LIMITED\n", limited, "BODY\n", body, "SEVERAL_LIMITS", strconv.Itoa(1<<kindCell),
		"NAMED", values[0], "LENGTH", values[1], "COUNT", values[2], "NUMBERS", values[3], "NAMES", values[4], "FRESH", values[5]).Replace(scriptFixed)
}

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
	"LEAKY": number(int64(kindLeaky)), "FITTING": number(int64(scriptUpToBit)), "LOG": number(int64(kindLog)), "SLOTS": number(int64(kindSlots)), "CELL": number(int64(kindCell)), "SEVERAL": "1", "CHANGE": "2", "LINES": "3",
	"LINE": number(opLine), "FREES": number(int64(lineFrees)), "LEAVES": number(int64(lineLeaves)), "MOST_TICKETS": number(int64(mostTickets)), "MOST_PARTIES": number(int64(mostParties)),
	"LONG_KEYS": number(int64(1) << longKeysBit), "LONG_BYTES": number(int64(longBytes)),
	"VERSION": letter(formatByte), "FORM": number(int64(formatByte)), "STRANGERS": number(int64(mostStrangers)),
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
func letter(b byte) string { return fmt.Sprintf(`'\%03d'`, b) }
