//go:build !nosqlite

package sqlengine

// A program built with the tag nosqlite has no driver of SQLite, which takes the compiler longer than all of Weir.
import _ "modernc.org/sqlite" // its driver is sqlite
