package serve

import (
	"strings"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/override"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

func TestAPoolIsNeverAShadow(t *testing.T) {
	config, err := rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: []byte(
		"rules: [{name: floor, match: any, limit: 5/m, otherwise: pool}, {name: pool, match: otherwise, limit: 50/m}]")})
	if err != nil {
		t.Fatal(err)
	}
	m := &modes{config: config}
	if _, err := m.find(override.ModeOf{Rule: "pool", Mode: override.Shadow}); err == nil || !strings.Contains(err.Error(), "a shadow asks none: name those rules") {
		t.Errorf("the pool: got %v, want the rules to name", err)
	}
	if r, err := m.find(override.ModeOf{Rule: "floor", Mode: override.Shadow}); err != nil || r != config.Rule("floor") {
		t.Errorf("the floor: got %v, %v", r, err)
	}
}
