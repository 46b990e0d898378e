//go:build !unix

package serve

import "os"

// saveSignals returns nil, because this system has no signal for a save.
func (f *stateFile) saveSignals() (asked <-chan os.Signal) { return nil }

// reloadSignals returns nil, because this system has no signal for a reload.
func reloadSignals(bool) (again <-chan os.Signal) { return nil }
