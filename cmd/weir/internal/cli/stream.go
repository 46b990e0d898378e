package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/vbauerster/mpb/v8/cwriter"

	"github.com/weirflow/weir/cmd/weir/internal/screen"
)

// isNull reports whether the stream is /dev/null.
func isNull(stream *os.File) bool {
	info, err := stream.Stat()
	if err != nil {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(info, null)
}

// IsTerminal reports whether the file is a character device other than /dev/null.
func IsTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && !isNull(file)
}

// usualColumns is the width of a terminal that does not tell.
const usualColumns = 80

// ScreenOf returns the screen that shows out. A pipe or a file has neither a width nor colours.
func ScreenOf(out io.Writer) screen.Screen {
	file, ok := out.(*os.File)
	if !ok || !IsTerminal(file) {
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

// RequireOutput returns an error if the output was closed before the start.
func RequireOutput(command string, out io.Writer) error {
	if file, ok := out.(*os.File); ok && isNull(file) && wasClosed(file) {
		return Fail(fmt.Errorf("%s: standard output is closed, or is /dev/null opened for reading too", command),
			"give it a file or a pipe; to discard the output: >/dev/null")
	}
	return nil
}
