package main

import (
	"io"
	"os"

	"github.com/vbauerster/mpb/v8/cwriter"

	"github.com/weirflow/weir/cmd/weir/internal/screen"
)

// usualColumns is the width of a terminal that does not tell.
const usualColumns = 80

// screenOf returns the screen that shows out. A pipe or a file has neither a width nor colours.
func screenOf(out io.Writer) screen.Screen {
	file, ok := out.(*os.File)
	if !ok || !isTerminal(file) {
		return screen.Screen{}
	}
	s := screen.Screen{Columns: usualColumns, Colour: colourful(os.Getenv)}
	if columns, _, err := cwriter.GetSize(int(file.Fd())); err == nil && columns > 0 {
		s.Columns = columns
	}
	return s
}

// colourful reports whether the environment wants colours on a terminal: see no-color.org.
func colourful(env func(string) string) bool {
	terminal := env("TERM")
	return env("NO_COLOR") == "" && terminal != "" && terminal != "dumb"
}
