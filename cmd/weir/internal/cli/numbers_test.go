package cli

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/spf13/cobra"
)

func TestAFlagIsTheNumberThatItsDigitsSayOrIsRefused(t *testing.T) {
	random := rand.New(rand.NewPCG(39, 5))
	for range 20_000 {
		var n int
		var seed uint64
		root, below := &cobra.Command{Use: "weir"}, &cobra.Command{Use: "serve"}
		root.AddCommand(below)
		below.Flags().IntVar(&n, "max-keys", 0, "")
		root.PersistentFlags().Uint64Var(&seed, "seed", 0, "")
		PlainNumbers(root)
		text := ""
		for range 1 + random.IntN(5) {
			text += string("00123456789-+_xXboe. "[random.IntN(21)])
		}
		want, err := strconv.Atoi(text)
		if plain := err == nil && strconv.Itoa(want) == text; plain != (below.Flags().Set("max-keys", text) == nil) && text != "-0" {
			t.Fatalf("--max-keys %q: in plain digits is %v, and it becomes %d", text, plain, n)
		}
		if n != want && n != 0 {
			t.Fatalf("--max-keys %q is %d", text, n)
		}
		if whole, err := ParseWhole(text); err == nil && (whole != int64(want) || fmt.Sprint(whole) != text && text != "-0") {
			t.Fatalf("%q is read as %d", text, whole)
		}
		if root.PersistentFlags().Set("seed", text) == nil && strconv.FormatUint(seed, 10) != text {
			t.Fatalf("--seed %q is %d", text, seed)
		}
	}
}
