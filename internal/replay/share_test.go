package replay

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/weirflow/weir/internal/randtest"
)

// Percentages are read and multiplied exactly, as big fractions are.
func TestSharesAreThoseOfBigFractions(t *testing.T) {
	for seed := range randtest.Seeds(t, 20, 5) {
		random := rand.New(rand.NewPCG(seed, 61))
		for range 2000 {
			digits := fmt.Sprint(random.IntN(110))
			if random.IntN(4) > 0 {
				digits += "."
				for range random.IntN(decimals + 3) {
					digits += fmt.Sprint(random.IntN(10) * random.IntN(2))
				}
			}
			want, ok := new(big.Rat).SetString(digits)
			want.Quo(want, big.NewRat(100, 1))
			places, exact := want.FloatPrec()
			readable := ok && want.Sign() > 0 && want.Cmp(big.NewRat(1, 1)) <= 0 && exact && places <= decimals+2
			target, err := ParseTarget("refuse " + digits + "%")
			if (err == nil) != readable {
				t.Fatalf("%s%%: got %v, want it read: %v", digits, err, readable)
			}
			if err != nil {
				continue
			}
			n := random.Int64N(math.MaxInt64) >> random.IntN(63)
			product := new(big.Int).Mul(big.NewInt(n), want.Num())
			if got, want := target.part(n), product.Quo(product, want.Denom()).Int64(); got != want {
				t.Fatalf("%s%% of %d: got %d, want %d", digits, n, got, want)
			}
			above := new(big.Int).Mul(big.NewInt(n), want.Num())
			above.Add(above, new(big.Int).Sub(want.Denom(), big.NewInt(1)))
			if got, want := target.spared(n), above.Quo(above, want.Denom()).Int64(); got != want {
				t.Fatalf("%s%% of %d, rounded up: got %d, want %d", digits, n, got, want)
			}
		}
	}
	for _, text := range []string{"%", ".%", "0%", "0.0%", "100.0000000000000001%", "101%", "1.2.3%", "-1%", "1e1%", "99999999999999999999999999999%", "0.00000000000000001%"} {
		if _, err := ParseTarget("refuse " + text); err == nil {
			t.Errorf("%s is read", text)
		}
	}
	for _, text := range []string{"5.%", ".5%", "100%", "100.000%", "00000000000000000000000000001%", "0.0000000000000001%", "1.0000000000000000000000000000%"} {
		if _, err := ParseTarget("refuse " + text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
