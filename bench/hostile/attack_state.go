package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/weirflow/weir"
)

var stateAttacks = []attack{
	{"flips", "copies of the state file with flipped bits, cut short or lengthened", (*attacker).flips},
}

// flips copies the state file while it is in use. A copy must load, and the daemon must refuse a corrupted copy.
func (a *attacker) flips() {
	for n := 0; !a.done(); n++ {
		content, err := os.ReadFile(filepath.Join(a.folder, "state"))
		if err != nil {
			a.Break(promiseState, "%v", err)
			return
		}
		if err := load(content); err != nil {
			a.Break(promiseState, "a copy of %d bytes made while the daemon runs: %v", len(content), err)
		}
		for range 20 {
			spoilt, how := a.spoil(content)
			err := load(spoilt)
			if _, refused := errors.AsType[*weir.SnapshotError](err); !refused {
				a.Break(promiseState, "a copy with %s was not refused as a snapshot: %v", how, err)
			}
			if n == 0 {
				a.startOn(spoilt, how)
				n++
			}
			a.did("spoilt copies", 1)
		}
		a.wait(time.Duration(a.between(20, 200)) * time.Millisecond)
	}
}

// spoil corrupts a copy of a state file.
func (a *attacker) spoil(content []byte) ([]byte, string) {
	at := a.random.IntN(len(content))
	switch a.random.IntN(10) {
	case 0:
		return content[:at], fmt.Sprintf("its first %d of %d bytes", at, len(content))
	case 1:
		return append(bytes.Clone(content), byte(at)), "a byte more"
	}
	spoilt, bit := bytes.Clone(content), a.random.IntN(8)
	spoilt[at] ^= 1 << bit
	return spoilt, fmt.Sprintf("bit %d of byte %d of %d flipped", bit, at, len(content))
}

// startOn starts a daemon on a corrupted file. The daemon must exit with 1 and leave the file unchanged.
func (a *attacker) startOn(spoilt []byte, how string) {
	file := filepath.Join(a.folder, fmt.Sprintf("spoilt%d", a.random.Uint64()))
	if err := os.WriteFile(file, spoilt, 0o600); err != nil {
		return
	}
	defer func() { _ = os.Remove(file) }()
	d, err := launch(a.program, a.folder, "--http", "127.0.0.1:0", "--state", file)
	if err != nil {
		return
	}
	select {
	case <-d.ended:
	case <-time.After(lockPatience + slack):
	}
	d.kill()
	left, err := os.ReadFile(file)
	if d.cmd.ProcessState.ExitCode() != 1 || err != nil || !bytes.Equal(left, spoilt) {
		a.Break(promiseState, "a daemon on a file with %s: %v, and the file is the same: %v", how, d.cmd.ProcessState, bytes.Equal(left, spoilt))
	}
	a.did("daemons", 1)
}

// loadable returns the error of loading a state file.
func loadable(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return load(content)
}

func load(content []byte) error {
	_, err := weir.LoadMemory(bytes.NewReader(content), weir.MemoryOptions{})
	return err
}
