package cli

import (
	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/cmd/weir/internal/screen"
)

// The texts that need no terminal.
var (
	Printable = plain.Printable
	Thousands = plain.Thousands
	Plural    = plain.Plural
	Duration  = plain.Duration
	Percent   = plain.Percent
	Fixed     = plain.Fixed
)

// Shorten truncates a key to the width of its column.
func Shorten(key string) string { return screen.Shorten(key, 60) }
