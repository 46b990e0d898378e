// Package rules holds the project to rules that no compiler knows: which package imports which, what modules require, and
// that documents are true to the code.
package conventions

import (
	"os"
	"sync"
)

// inRoot makes the root of the project the folder of the tests. It has to be called by a test: the go command does not see a
// change of folder in TestMain, and would repeat a result after the files have changed.
var inRoot = sync.OnceFunc(func() {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
})
