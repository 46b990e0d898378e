package redislimit

import (
	_ "embed"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// The parts of the script. head.lua defines what it is given and what it
// replies, loop.lua goes through the batch, and the others are one function each.
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
	//go:embed script/log.lua
	scriptLog string
	//go:embed script/slots.lua
	scriptSlots string
)

// script is called by its hash, and sent as text to a server that does not know
// it yet.
var script = rueidis.NewLuaScript(scriptText())

// scriptText joins the parts. A part that is not needed in a call must not cost
// it anything, not even the making of its function: so they are the branches of
// one function, by their kind; many is kind 0.
func scriptText() string {
	var b strings.Builder
	b.WriteString(scriptHead)
	b.WriteString("local function make(kind)\n")
	for k, text := range []string{scriptMany, scriptBucket, scriptWindow, scriptCycle, scriptLog, scriptSlots} {
		b.WriteString("if kind == " + strconv.Itoa(k) + " then\n" + text + "end\n")
	}
	b.WriteString("end\n")
	b.WriteString(scriptLoop)
	return b.String()
}
