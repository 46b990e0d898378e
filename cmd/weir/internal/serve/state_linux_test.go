package serve

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

// /dev/full is a full disk.
func TestFullDiskIsNamedInTheHint(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := &stateFile{path: "state"}
	var said bytes.Buffer
	cli.Report(&said, f.cannot("write", write(full, weir.NewMemory(weir.MemoryOptions{}).Save)))
	want := "weir: serve: --state state: cannot write it: save: write /dev/full: no space left on device\nhint: the disk or this user's quota is full: "
	if !strings.HasPrefix(said.String(), want) || strings.Count(said.String(), "\n") != 2 {
		t.Errorf("got %q, want %q… and nothing after the hint", said.String(), want)
	}
}
