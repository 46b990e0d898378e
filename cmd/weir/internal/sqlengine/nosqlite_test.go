//go:build nosqlite

package sqlengine

import (
	"strings"
	"testing"
)

func TestAProgramWithoutSQLiteSaysSo(t *testing.T) {
	_, err := Open(t.Context(), "sqlite:weir.db", false)
	if err == nil || !strings.Contains(err.Error(), "nosqlite") {
		t.Errorf("got %v, want an error that names the tag nosqlite", err)
	}
}
