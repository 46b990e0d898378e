package enginekit_test

import (
	"testing"

	"github.com/weirflow/weir/limittest"
)

func TestTheExampleIsAWholeEngine(t *testing.T) { limittest.Run(t, newEngine) }
