package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
)

// Offer makes a shell complete a flag with these values instead of file names.
func Offer(cmd *cobra.Command, flag string, values ...string) {
	fixed := cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc(flag, fixed) // fails only for an unknown flag
}

// NotNegative refuses a number or a duration below 0. The hint says what 0 means.
func NotNegative[T int | time.Duration](flag string, value T, hint string) error {
	if value < 0 {
		return Misusef(hint, "--%s: %v is below 0", flag, value)
	}
	return nil
}

// ParseByteRate reads a size per period: 200KiB/s, 5MB/m, 1GiB/1h30m.
func ParseByteRate(flag, text string) (weir.Rate, error) {
	const hint = "a rate of bytes looks like 200KiB/s, 5MB/m or 1GiB/1h30m; units: B, KB, KiB, MB, MiB, GB, GiB"
	size, period, found := strings.Cut(text, "/")
	if !found {
		return weir.Rate{}, Misuse(fmt.Errorf("%s: %q has no period", flag, text), hint)
	}
	n, err := ParseSize(size)
	if err != nil {
		return weir.Rate{}, Misuse(fmt.Errorf("%s: %w", flag, err), hint)
	}
	rate, err := weir.ParseRate("1/" + period)
	if err != nil {
		return weir.Rate{}, Misuse(fmt.Errorf("%s: %q is not a period", flag, period), hint)
	}
	rate.Count = n
	return rate, nil
}

var sizeUnits = map[string]int64{
	"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
}

// ParseSize reads a whole number with a unit: 200KiB.
func ParseSize(text string) (int64, error) {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	size, known := sizeUnits[text[digits:]]
	if digits == 0 || !known {
		return 0, fmt.Errorf("%q is not a size: want a whole number and a unit", text)
	}
	n, err := strconv.ParseInt(text[:digits], 10, 64)
	if err != nil || n < 1 || n > weir.MaxCount/size {
		return 0, fmt.Errorf("%q is not between 1 B and 2^53 B", text)
	}
	return n * size, nil
}
