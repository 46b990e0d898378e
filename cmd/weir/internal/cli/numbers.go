package cli

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// errNotPlain is the error of a number in a form that might mean another number: is 010 ten or eight?
var errNotPlain = errors.New("not a whole number in plain digits, like 10")

// ParseWhole reads a whole number in plain digits.
func ParseWhole(text string) (int64, error) {
	if !isPlain(text) {
		return 0, errNotPlain
	}
	return strconv.ParseInt(text, 10, 64)
}

// isPlain reports whether a text is a whole number as people write it: without a plus, a zero before it, or a prefix like 0x.
func isPlain(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return digits == "0" || digits != "" && digits[0] != '0' && strings.Trim(digits, "0123456789") == ""
}

// PlainNumbers makes the flags of a command, and of those below it, read whole numbers in plain digits. By themselves they take
// 0x10, 010 and 1_0, too.
func PlainNumbers(cmd *cobra.Command) {
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			switch f.Value.Type() {
			case "int", "int64", "uint64":
				f.Value = plainNumber{f.Value}
			}
		})
	}
	for _, below := range cmd.Commands() {
		PlainNumbers(below)
	}
}

// plainNumber is the value of a flag.
type plainNumber struct{ pflag.Value }

// Set refuses a number that is not in plain digits. It leaves words, such as auto, to the flag.
func (n plainNumber) Set(text string) error {
	if text != "" && strings.Contains("+-0123456789", text[:1]) && !isPlain(text) {
		return errNotPlain
	}
	return n.Value.Set(text)
}
