package main

import (
	"slices"
	"testing"
)

// mostNames bounds what a user of the root package may have to learn, with the 8 names of quotas by the calendar, the one of a
// window from the first use and the 5 of bans. Before it grows, something else can go.
const mostNames = 208

func TestTheRootHasFewNames(t *testing.T) {
	found, err := namesIn("../..")
	if err != nil {
		t.Fatal(err)
	}
	if n := found.learned(); n > mostNames {
		t.Errorf("package weir has %d names, want at most %d; 'go run ./bench/house -names' lists them", n, mostNames)
	}
	for name, in := range map[string][]string{"Keyed": found.top, "Never": found.top, "Keyed.Take": found.methods, "LimitError.Error": found.known} {
		if !slices.Contains(in, name) {
			t.Errorf("%s is not counted", name)
		}
	}
}
