package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	// A program under the race detector sleeps a second before it exits. The tests start it some hundred times.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=50 "+os.Getenv("GORACE"))
	testscript.Main(m, map[string]func(){"weir": main})
}

// TestScripts runs testdata/script against the real main. daemon_test.go adds commands to the usual ones.
func TestScripts(t *testing.T) { runScripts(t, "testdata/script") }

func runScripts(t *testing.T, folder string) {
	testscript.Run(t, testscript.Params{
		Dir:                 folder,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Values[daemonKey{}] = new(daemon)
			env.Setenv("GORACE", os.Getenv("GORACE"))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"serve":  serveInScript,
			"signal": signalInScript,
			"end":    endInScript,
			"save":   saveInScript,
			"hangup": hangupInScript,
			"crash":  crashInScript,
		},
	})
}
