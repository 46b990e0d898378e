package main

import (
	"os"
	"testing"
)

func TestThePageHasWhatTheModelComputes(t *testing.T) {
	t.Chdir("../..")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if now, err := withTable(string(text)); err != nil || now != string(text) {
		t.Errorf("%s is not as computed (%v): go run ./bench/scaling writes it", page, err)
	}
	if drawn, err := os.ReadFile(drawing); err != nil || string(drawn) != picture() {
		t.Errorf("%s is not as computed (%v): go run ./bench/scaling writes it", drawing, err)
	}
}

func TestCoresGrowWithTheRateAndTheCost(t *testing.T) {
	s := shape{client: 3, redis: 6}
	if cores, servers := s.cores(1e6); servers != 10 || cores != 15 { // 3 and 6 busy cores, planned at 60 %
		t.Errorf("got %v cores and %v servers, want 15 and 10", cores, servers)
	}
	if cores, _ := s.cores(1); cores != 2 {
		t.Errorf("got %v cores for a decision a second, want one and a server", cores)
	}
}
