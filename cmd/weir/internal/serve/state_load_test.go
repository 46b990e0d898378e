package serve

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirflow/weir"
)

// savedState returns a state file with 7 of 20 units spent of key "k", and a unit of another limit. It logs to the buffer.
func savedState(t *testing.T) (*stateFile, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	f := &stateFile{path: filepath.Join(t.TempDir(), "state"), log: slog.New(slog.NewTextHandler(log, nil))}
	engine := weir.NewMemory(weir.MemoryOptions{})
	window, err := weir.ParseRule("w=sliding log 20/366d")
	if err != nil {
		t.Fatal(err)
	}
	for rule, cost := range map[*weir.Rule]int64{slowRule(t): 7, window: 1} {
		if d, err := engine.Take(t.Context(), rule.For("k", cost)); err != nil || !d.Allowed {
			t.Fatalf("take: %+v, %v", d, err)
		}
	}
	if err := f.save(engine); err != nil {
		t.Fatal(err)
	}
	return f, log
}

// rewrite changes the file, and returns its new content.
func rewrite(t *testing.T, f *stateFile, change func(content []byte) []byte) []byte {
	t.Helper()
	content, err := os.ReadFile(f.path)
	if err == nil {
		content = change(content)
		err = os.WriteFile(f.path, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// renamed returns a snapshot with a limit that no program knows in place of the sliding log, and a correct checksum.
func renamed(content []byte) []byte {
	body := bytes.Replace(content[:len(content)-4], []byte("sliding log"), []byte("sliding lag"), 1)
	return binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

// TestStatesOfAnUnknownLimitAreNamedAndTheFileIsKeptOnce starts with states that are not understood: the others are in
// force, the log names what is not, and the first such file stays.
func TestStatesOfAnUnknownLimitAreNamedAndTheFileIsKeptOnce(t *testing.T) {
	f, log := savedState(t)
	content := rewrite(t, f, renamed)
	if got := spent(t, f); got != 7 {
		t.Errorf("%d spent in the file, want 7", got)
	}
	for _, want := range []string{`states of the state file are not in force`, `rule \"w\", limit \"sliding lag/`, `(states: 1)`, `copy=` + f.path + `.bad`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	for range 2 { // the second time with another file
		if kept, err := os.ReadFile(f.path + badEnd); err != nil || !bytes.Equal(kept, content) {
			t.Errorf("the copy has %d bytes, want the %d of the file (%v)", len(kept), len(content), err)
		}
		rewrite(t, f, func(content []byte) []byte { return renamed(bytes.ReplaceAll(content, []byte("lag"), []byte("leg"))) })
		if got := spent(t, f); got != 7 {
			t.Errorf("%d spent in the second file, want 7", got)
		}
	}
	if want := "an earlier copy is there already and stays"; !strings.Contains(log.String(), want) {
		t.Errorf("the log lacks %q:\n%s", want, log)
	}
}

// TestADamagedFileIsRefusedUnlessPartsAreAskedFor damages the file in each of the ways that a load tells apart.
func TestADamagedFileIsRefusedUnlessPartsAreAskedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(content []byte) []byte
		spent  int64 // with --state-partial; less than 0 if even that is refused
	}{
		"truncated": {func(content []byte) []byte { return content[:len(content)-1] }, 7},
		"checksum":  {func(content []byte) []byte { content[len(content)-1]++; return content }, 7},
		"newer":     {func(content []byte) []byte { content[8]++; return content }, 0},
		"foreign":   {func([]byte) []byte { return []byte("PK, or whatever begins otherwise") }, -1},
	} {
		t.Run(name, func(t *testing.T) {
			f, log := savedState(t)
			content := rewrite(t, f, tt.change)
			_, err := f.load()
			if err == nil || strings.Contains(log.String(), "level=WARN") {
				t.Fatalf("without --state-partial: got error %v and log %s", err, log)
			}
			f.partial = true
			if tt.spent < 0 {
				if _, err := f.load(); err == nil {
					t.Error("a foreign file is loaded")
				}
				return
			}
			if got := spent(t, f); got != tt.spent {
				t.Errorf("%d spent in the file, want %d", got, tt.spent)
			}
			if kept, err := os.ReadFile(f.path + badEnd); err != nil || !bytes.Equal(kept, content) {
				t.Errorf("the copy has %d bytes, want the %d of the file (%v)", len(kept), len(content), err)
			}
			if !strings.Contains(log.String(), "the state file was loaded in part") {
				t.Errorf("the log lacks what happened:\n%s", log)
			}
		})
	}
}

func TestTheDaemonBoundsKeysLikeTheMemoryEngine(t *testing.T) {
	if got := weir.NewMemory(weir.MemoryOptions{}).Stats().MaxKeys; got != defaultKeys {
		t.Errorf("--max-keys is %d by default, the engine's bound is %d", defaultKeys, got)
	}
}
