package algorithm

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

// TestGetRateOfGuavasVectors compares the rate after each setRate of the vectors, bit for bit. Package weir does not
// export that rate; limittest compares all other answers of the vectors.
func TestGetRateOfGuavasVectors(t *testing.T) {
	file, err := os.ReadFile("../vectors/files/guava.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for line := range bytes.Lines(file) {
		compared += compareGetRate(t, line)
	}
	if compared == 0 {
		t.Fatal("no vector has a getRate")
	}
}

// compareGetRate compares the rates of one scenario and returns their number.
func compareGetRate(t *testing.T, line []byte) (compared int) {
	t.Helper()
	var s struct {
		ID       string
		Kind     string
		Seconds  float64 `json:"max_burst_seconds"`
		WarmUpUs float64 `json:"warmup_us"`
		Cold     float64 `json:"cold_factor"`
		Ops      []struct {
			Rate    float64
			GetRate *float64
		}
	}
	if err := json.Unmarshal(line, &s); err != nil {
		t.Fatalf("%.80s: %v", line, err)
	}
	for i, op := range s.Ops {
		if op.GetRate == nil {
			continue
		}
		limit := NewBursty(op.Rate, s.Seconds)
		if s.Kind != "bursty" {
			limit = NewWarmUp(op.Rate, s.WarmUpUs, s.Cold)
		}
		if got := 1e6 / limit.interval; got != *op.GetRate { // as Guava computes it
			t.Errorf("%s op %d: rate %v: getRate is %v, want %v", s.ID, i, op.Rate, got, *op.GetRate)
		}
		compared++
	}
	return compared
}
