package collect

import (
	"os"
	"testing"

	"github.com/weirflow/weir/fetch"
)

// A full disk leaves a part of a line. A line after it would make the journal unreadable.
func TestNothingIsWrittenAfterAFailedWrite(t *testing.T) {
	f, err := Open(t.TempDir(), func(*os.File) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	journal := f.journal
	if f.journal, err = os.Open(journal.Name()); err != nil { // which cannot be written
		t.Fatal(err)
	}
	r := fetch.Result{URL: "http://a/", Outcome: fetch.Fetched}
	_, first := f.Record(r)
	f.journal.Close()
	f.journal = journal
	_, second := f.Record(r)
	if first == nil || second != first {
		t.Errorf("two lines: %v, then %v; want the error of the first twice", first, second)
	}
	if info, err := journal.Stat(); err != nil || info.Size() != int64(len(firstLine)) {
		t.Errorf("the journal has %d bytes, %v; want the first line alone", info.Size(), err)
	}
}
