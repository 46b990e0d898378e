package override

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/randtest"
)

// someEntries are in a file, as versions of weir before checksums wrote it, and as this version does.
func someEntries(t *testing.T) (old, now []byte) {
	t.Helper()
	until := time.Date(2099, 12, 1, 10, 30, 0, 123456789, time.UTC)
	entries := []Entry{{Rule: "api", Key: "acme", Limit: "token bucket 1000/s", Until: until, By: "admin socket"}, {Key: "192.0.2.1", Limit: Block, Until: until},
		{Rule: "login", Key: "bot-", Prefix: true, Limit: Block, Until: until}, {Key: "friend", Limit: Allow, Until: until}}
	old, err := json.MarshalIndent(entries, "", " ")
	if err == nil {
		now, err = writeEntries(entries)
	}
	if err != nil {
		t.Fatal(err)
	}
	return old, now
}

// opened returns the entries of a file with a content.
func opened(t *testing.T, content []byte) ([]Entry, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "o")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := OpenFile(path, quiet)
	if err != nil {
		if after, _ := os.ReadFile(path); !bytes.Equal(after, content) {
			t.Errorf("the refused file was changed to %q", after)
		}
		return nil, err
	}
	return table.Entries(), nil
}

// mutated changes a content in one place, as a disk, a bad copy or an editor may.
func mutated(random *rand.Rand, content []byte) []byte {
	at := random.IntN(len(content))
	b := bytes.Clone(content)
	switch random.IntN(6) {
	case 0:
		b[at] ^= 1 << random.IntN(8)
	case 1:
		b[at] = byte(random.IntN(256))
	case 2:
		b = append(b[:at], b[at+1:]...)
	case 3:
		b = b[:at]
	case 4: // a letter more
		b = append(b[:at:at], append([]byte{byte(' ' + random.IntN(95))}, content[at:]...)...)
	case 5: // a stretch twice
		end := min(len(content), at+1+random.IntN(40))
		b = append(b[:end:end], content[at:]...)
	}
	return b
}

func TestNoMutationOfAFileOfOverridesIsAccepted(t *testing.T) {
	_, content := someEntries(t)
	if entries, err := opened(t, content); err != nil || len(entries) != 4 {
		t.Fatalf("the file itself: %d entries, %v", len(entries), err)
	}
	for seed := range randtest.Seeds(t, 2000, 140) {
		changed := mutated(randtest.New(seed), content)
		if bytes.Equal(changed, content) {
			continue
		}
		if entries, err := opened(t, changed); err == nil {
			t.Errorf("accepted, with %d entries: %q", len(entries), changed)
		} else if !errors.As(err, new(*StoreError)) {
			t.Errorf("got %v", err)
		}
	}
}

func TestAFileWithoutAChecksumIsReadStrictlyOnceAndRewritten(t *testing.T) {
	old, _ := someEntries(t)
	path := filepath.Join(t.TempDir(), "o")
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	table, err := OpenFile(path, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil || len(table.Entries()) != 4 || !strings.Contains(log.String(), "had no checksum, and has one now") {
		t.Fatalf("got %v, %v, log %s", table.Entries(), err, &log)
	}
	content, err := os.ReadFile(path)
	if err != nil || !bytes.HasPrefix(content, []byte(head)) {
		t.Fatalf("the file has %q, %v", content, err)
	}
	log.Reset()
	if table, err = OpenFile(path, slog.New(slog.NewTextHandler(&log, nil))); err != nil || len(table.Entries()) != 4 || log.Len() > 0 {
		t.Errorf("the second time: got %v, %v, log %s", table.Entries(), err, &log)
	}
	if entries, err := opened(t, []byte("null")); err != nil || len(entries) != 0 { // as versions before wrote no entry
		t.Errorf("no entry: got %v, %v", entries, err)
	}
}

// Each of these was accepted before, and dropped a block, widened it, or moved it.
func TestWhatWeirCannotHaveWrittenIsRefused(t *testing.T) {
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for _, entry := range []string{
		`{"key":"a","limit":"deny all","unti1":"` + until + `"}`,
		`{"rule ":"r","key":"a","limit":"deny all","until":"` + until + `"}`,
		`{"prefix":true,"limit":"deny all","until":"` + until + `"}`,
		`{"key":"","prefix":true,"limit":"deny all","until":"` + until + `"}`,
		`{"key":"a","Key":"b","limit":"deny all","until":"` + until + `"}`,
		`{"key":"a","key":"b","limit":"deny all","until":"` + until + `"}`,
		`{"Key":"a","limit":"deny all","until":"` + until + `"}`,
		`{"rule":null,"key":"a","limit":"deny all","until":"` + until + `"}`,
		`{"key":"a","limit":"deny alk","until":"` + until + `"}`,
		`{"key":"a","until":"` + until + `"}`,
		`{"key":"a` + "\xff" + `","limit":"deny all","until":"` + until + `"}`,
		`{"key":"a","limit":"deny all","until":"` + until + `"},{"key":"a","limit":"unlimited","until":"` + until + `"}`,
		`null`, `[]`, `1`,
	} {
		if entries, err := opened(t, []byte("["+entry+"]")); err == nil {
			t.Errorf("%s: got %+v", entry, entries)
		}
	}
	for _, content := range []string{"", "[]x", "[] []", `{}`, head + "00000000\n[]\n", head} {
		if entries, err := opened(t, []byte(content)); err == nil {
			t.Errorf("%q: got %+v", content, entries)
		}
	}
}

// FuzzReadEntries checks that a file that is read is one that weir can have written: written again, it has the same entries.
func FuzzReadEntries(f *testing.F) {
	f.Add([]byte("null"))
	f.Add([]byte(`[{"key":"a","limit":"deny all","until":"2026-12-01T00:00:00Z"}]`))
	f.Add([]byte(headOf([]byte("[]\n")) + "[]\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		entries, _, err := readEntries(content)
		if err != nil {
			return
		}
		again, err := writeEntries(entries)
		if err != nil {
			t.Fatal(err)
		}
		same, sealed, err := readEntries(again)
		if err != nil || !sealed || len(same) != len(entries) {
			t.Fatalf("%q: got %+v, and written again %+v, %v", content, entries, same, err)
		}
		for i := range same {
			if same[i].target() != entries[i].target() || same[i].Limit != entries[i].Limit || !same[i].Until.Equal(entries[i].Until) {
				t.Fatalf("%q: got %+v, and written again %+v", content, entries[i], same[i])
			}
		}
	})
}

func TestADamagedSecretIsNotUsed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "o")
	secret, err := newTable(t, path).Secret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+secretEnd, secret[:3], 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := newTable(t, path).Secret(t.Context()); err == nil || !strings.Contains(err.Error(), "is damaged: it has 3 bytes") {
		t.Errorf("got %q, %v", got, err)
	}
}
