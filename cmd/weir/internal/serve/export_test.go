package serve

import "github.com/weirflow/weir/internal/layertest"

// Daemons of the tests decide below the functions that `make more` asks for.
func init() { wrap = layertest.Around }
