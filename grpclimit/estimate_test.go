package grpclimit_test

import (
	"strings"
	"testing"

	"github.com/weirflow/weir/front"
	"github.com/weirflow/weir/grpclimit"
)

func TestMessagesAreNotEstimated(t *testing.T) {
	e, err := front.NewEstimate(front.EstimateOptions{Max: 60})
	if err != nil {
		t.Fatal(err)
	}
	rules := []grpclimit.Rule{{Limit: "tokens=100/m", Estimate: e, Settled: true}}
	if _, err := grpclimit.NewServer(grpclimit.Options{Rules: rules}); err != nil {
		t.Errorf("calls: %v", err)
	}
	if _, err := grpclimit.NewServer(grpclimit.Options{Rules: rules, EachMessage: true}); err == nil || !strings.Contains(err.Error(), "eachMessage charges messages") {
		t.Errorf("messages: got %v, want an error", err)
	}
}
