// Package picture draws what simulations and replays measure: to an SVG file, or with characters on a terminal.
package picture

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/screen"
)

// Picture is a Timeline or a Chart.
type Picture interface {
	// draw returns the picture for a file.
	draw() *drawing
	// Terminal draws the picture with characters, no wider than the screen if that has 30 columns.
	Terminal(screen.Screen) string
}

// Ending is that of the names of files that Write makes.
const Ending = ".svg"

// IsFile reports whether a file name has that ending.
func IsFile(name string) bool { return strings.EqualFold(filepath.Ext(name), Ending) }

// Write draws the picture as SVG.
func Write(w io.Writer, p Picture) error {
	_, err := io.WriteString(w, p.draw().String())
	return err
}
