package main

import (
	"slices"
	"strings"
	"testing"
)

const someResults = `# Results

| what | value |
|---|---|
| took | 9 ±1 |

## One limiter

| ns (× floor) | allowed | denied | allocs |
|---|---|---|---|
| floor | 30.4 ±5 % | 27.7 ±23 % | 0.00 / 0 |
| weir_a | 34.9 ±2 % (1.15) | - | 0.00 / 0 |

## Memory

| peer | bytes |
|---|---|
| weir_a | 23 ±1 |
`

func TestFiguresAreReadFromTablesOfNanoseconds(t *testing.T) {
	got := figuresIn(someResults)
	want := figures{{"One limiter", "floor", "allowed"}: 30.4, {"One limiter", "floor", "denied"}: 27.7, {"One limiter", "weir_a", "allowed"}: 34.9}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for at, ns := range want {
		if got[at] != ns {
			t.Errorf("%v: got %v, want %v", at, got[at], ns)
		}
	}
}

func TestRatiosAreThoseOfPairs(t *testing.T) {
	at := place{"s", "weir_a", "c"}
	rounds := []pair{
		{figures{at: 10, {"s", "gone", "c"}: 1}, figures{at: 11}},
		{figures{at: 100}, figures{at: 120}},
		{figures{at: 20}, figures{at: 20, {"s", "new", "c"}: 1}},
	}
	got := changes(rounds)
	want := []change{{place: at, before: 20, after: 20, ratio: 1.1, smallest: 1, largest: 1.2}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestSlowerFiguresAreListedFirst(t *testing.T) {
	list := []change{
		{place{"s", "floor", "c"}, 10, 20, 2, 2, 2},
		{place{"s", "weir_a", "c"}, 10, 10.4, 1.04, 1, 1.2},
		{place{"s", "weir_b", "c"}, 10, 11, 1.1, 1, 1.2},
		{place{"s", "weir_c", "c"}, 10, 12, 1.2, 1.1, 1.3},
	}
	var out strings.Builder
	printSlower(&out, list)
	want := "2 of 3 figures are more than 5 % slower by their median; of these 1 in every pair.\n\n" +
		"- weir_c, s, c: 10.0 → 12.0 (1.20 ×, 1.10 to 1.30)\n- weir_b, s, c: 10.0 → 11.0 (1.10 ×, 1.00 to 1.20)\n\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestFlagsOfPairsAreNotPassedOn(t *testing.T) {
	got := withoutPairs([]string{"-base", "abc", "-mixes=one key", "--rounds=3", "-out", "x", "-duration", "5ms"})
	if want := []string{"-duration", "5ms"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
