package cli

import "github.com/weirflow/weir/cmd/weir/internal/plain"

// The texts that need no terminal.
var (
	Printable = plain.Printable
	Thousands = plain.Thousands
	Plural    = plain.Plural
	Duration  = plain.Duration
	Wait      = plain.Wait
	Percent   = plain.Percent
	Fixed     = plain.Fixed
	Shorten   = plain.Shorten

	UnshownText, UnshownLines = plain.UnshownText, plain.UnshownLines
)
