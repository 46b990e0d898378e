package measure

// Pair asks two builds for a window of a row each. Every second turn begins with the later build, so that neither
// always follows the other.
func Pair[Row, Figures any](turn int, before, after Asker[Row, Figures], row Row) (b, a Figures, err error) {
	if turn%2 == 0 {
		if b, err = before.Ask(row); err == nil {
			a, err = after.Ask(row)
		}
		return b, a, err
	}
	if a, err = after.Ask(row); err == nil {
		b, err = before.Ask(row)
	}
	return b, a, err
}

// Paired is one figure of neighbouring windows of two builds, from one round.
type Paired struct{ Before, After Series }

// Change is a figure before and after, and the ratios of its windows.
type Change struct {
	Before, After            float64 // medians of all windows
	Ratio, Smallest, Largest float64 // of the rounds; a round counts with the median ratio of neighbouring windows
}

// ChangeOf returns the change of a figure over all rounds.
func ChangeOf(rounds []Paired) Change {
	var before, after, ratios Series
	for _, r := range rounds {
		before, after = append(before, r.Before...), append(after, r.After...)
		ratios = append(ratios, r.After.Over(r.Before).Median())
	}
	smallest, largest := ratios.Range()
	return Change{before.Median(), after.Median(), ratios.Median(), smallest, largest}
}
