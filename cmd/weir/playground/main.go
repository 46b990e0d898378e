//go:build !js

package main

import (
	"fmt"
	"os"
)

// main says how to build the program, which runs in a browser alone.
func main() {
	fmt.Fprintln(os.Stderr, "playground: it runs in a browser: scripts/playground.sh DIR builds it with its page, and weir playground DIR serves both")
	os.Exit(2)
}
