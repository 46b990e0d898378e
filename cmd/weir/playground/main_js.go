//go:build js

// Command playground is the program that the page "Try it" runs in a worker. It makes the functions of package
// playground callable there.
package main

import (
	"io"
	"runtime/debug"
	"syscall/js"

	"github.com/weirflow/weir/cmd/weir/internal/playground"
)

// mostMemory is where garbage is collected at once, in bytes. The memory of a page never shrinks.
const mostMemory = 700 << 20

// main defines weirAnswer(question, host), which returns the answer as text, and calls weirReady. A host may have a log: size, and
// read(buffer), which fills a Uint8Array and returns how many bytes it has filled, or throws; and progress(stage, done, of).
func main() {
	debug.SetMemoryLimit(mostMemory)
	js.Global().Set("weirAnswer", js.FuncOf(func(_ js.Value, args []js.Value) any {
		return string(playground.Answer([]byte(args[0].String()), hostOf(args[1])))
	}))
	js.Global().Call("weirReady")
	select {}
}

func hostOf(v js.Value) playground.Host {
	host := playground.Host{Progress: func(stage string, done, of int64) { v.Call("progress", stage, float64(done), float64(of)) }}
	if size := v.Get("size"); size.Type() == js.TypeNumber {
		host.Size, host.Log = int64(size.Float()), &log{host: v}
	}
	return host
}

// log reads a file of the browser, slice by slice.
type log struct {
	host  js.Value
	slice js.Value // of the page's memory
}

// Read copies the next bytes of the file.
func (l *log) Read(p []byte) (n int, err error) {
	const most = 1 << 20
	if l.slice.IsUndefined() {
		l.slice = js.Global().Get("Uint8Array").New(most)
	}
	defer func() {
		p := recover()
		if e, ok := p.(js.Error); ok {
			n, err = 0, e
		} else if p != nil {
			panic(p)
		}
	}()
	if n = l.host.Call("read", l.slice, min(len(p), most)).Int(); n == 0 {
		return 0, io.EOF
	}
	return js.CopyBytesToGo(p[:n], l.slice), nil
}
