package wire

import (
	"crypto/fips140"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"strings"
	"sync"
)

//go:embed script/*.lua
var scriptFiles embed.FS

// scriptOrder names the files of the script. Each uses what those before it define.
var scriptOrder = []string{"call", "bucket", "window", "cycle", "quota", "first", "fixed", "logs", "ban", "several", "upto", "identity", "batch"}

// Sendable is the script as an engine sends it.
type Sendable struct{ Source, Hash string }

// Script is made with the first engine, because many programs that import this package, such as most commands of weir,
// make none.
//
// The engine calls the script by its hash, and sends the text to a server that does not know it. Redis names scripts by
// SHA-1, which protects nothing here, so FIPS 140 mode need not refuse it.
var Script = sync.OnceValue(func() (c Sendable) {
	var files strings.Builder
	for _, name := range scriptOrder {
		text, err := scriptFiles.ReadFile("script/" + name + ".lua")
		if err != nil {
			panic(err) // a name that is not embedded
		}
		files.Write(text)
	}
	c.Source = files.String()
	fips140.WithoutEnforcement(func() {
		sum := sha1.Sum([]byte(c.Source))
		c.Hash = hex.EncodeToString(sum[:])
	})
	return c
})
