//go:build amd64 && !race

package table

// Write writes a word of an entry that the caller holds. Other callers may read it meanwhile. The first word is written
// last, which ends the hold.
//
// On amd64 a plain store is one write, and no later write overtakes it. An atomic one would also wait until it is in the
// cache, which a hold does not need: until the first word is there, other callers read Held.
func Write(at *uint64, word uint64) { *at = word }
