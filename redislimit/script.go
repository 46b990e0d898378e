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
)

// The engine calls the script by its hash, and sends the text to a server that does not know it: rueidis does so
// itself, and eval does so for other clients. Redis names scripts by SHA-1, which protects nothing here, so FIPS 140
// mode need not refuse it.
var (
	scriptSource = scriptText()
	scriptHash   string
	script       *rueidis.Lua
)

func init() {
	fips140.WithoutEnforcement(func() {
		sum := sha1.Sum([]byte(scriptSource))
		scriptHash = hex.EncodeToString(sum[:])
		script = rueidis.NewLuaScript(scriptSource)
	})
}

// scriptText joins the parts. A part must cost nothing in a call that does not need it, not even the creation of its
// functions. So the script creates each part only if it occurs; many is kind 0, and upto is the last.
func scriptText() string {
	var b strings.Builder
	b.WriteString(scriptHead)
	for k, text := range []string{scriptMany, scriptBucket, scriptWindow, scriptCycle, scriptLog, scriptSlots, scriptUpTo} {
		fmt.Fprintf(&b, "if mask %% %d >= %d then\nkinds[%d] = { (function()\n%send)() }\nend\n", 2<<k, 1<<k, k, text)
	}
	b.WriteString(scriptLoop)
	text := strings.NewReplacer("\nGLANCE\n", "\n"+scriptGlance, "\nENTRIES\n", "\n"+scriptEntries).Replace(b.String())
	return scriptNames.ReplaceAllStringFunc(text, func(name string) string { return scriptValues[name] })
}

// scriptValues are the values of names in the script, and scriptNames finds the names.
var (
	scriptValues = map[string]string{
		"PEEK": number(opPeek), "TAKE": number(opTake), "RECORD": number(opRecord), "RESET": number(opReset), "UNDO": number(opUndo), "AGAIN": number(opAgain), "UPTO": number(opUpTo), "RENEW": number(opRenew),
		"BUCKET": number(int64(kindBucket)), "LOG": number(int64(kindLog)),
		"REFUSED": letter(flagRefused), "ADMITTED": letter(flagAdmitted), "UNREADABLE": letter(flagUnreadable),
		"MOST_UNITS": number(int64(mostUnits)), "MOST_AHEAD": number(int64(mostAhead)),
	}
	scriptNames = regexp.MustCompile(`\b(` + strings.Join(slices.Collect(maps.Keys(scriptValues)), "|") + `)\b`)
)

func number[N op | int64](n N) string { return strconv.FormatInt(int64(n), 10) }

// letter returns a Lua string of one byte.
func letter(b byte) string { return fmt.Sprintf(`'\%03d'`, b) }
