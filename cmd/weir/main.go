// Command weir limits rates: it serves decisions, and replays access logs to
// show what limits would have decided.
package main

import "os"

func main() { os.Exit(Main()) }
