package playground

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

const realLog = "../../../../simulate/testdata/access.log.gz"

func open(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// askAbout asks about a log.
func askAbout(t *testing.T, log io.Reader, question map[string]any) (logged Logged, failure Failure) {
	t.Helper()
	question["do"], question["name"] = "log", "access.log"
	if question["key"] == nil {
		question["key"] = "ip"
	}
	asked, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	var a struct {
		OK    *Logged  `json:"ok"`
		Error *Failure `json:"error"`
	}
	if err := json.Unmarshal(Answer(asked, Host{Log: log}), &a); err != nil {
		t.Fatal(err)
	}
	if a.Error != nil {
		return logged, *a.Error
	}
	return *a.OK, failure
}

func TestALogIsTriedPackedByGzipOrZstd(t *testing.T) {
	packed := open(t, realLog)
	var again bytes.Buffer
	w, err := zstd.NewWriter(&again)
	if err == nil {
		_, err = w.Write(packed) // a gzip file, packed once more
	}
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	tried := []string{"fixed window 5/10s", "sliding window 60/1m"}
	first, failure := askAbout(t, bytes.NewReader(packed), map[string]any{"tried": tried, "page": true})
	if failure.Message != "" || first.Report.Lines != 10_000 || len(first.Report.Limits) != 2 || len(first.Times) != 2 || !strings.HasPrefix(first.Page, "<!doctype html>") || len(first.Report.Limits[0].WorstKeys) != topRows {
		t.Fatalf("got %+v, %d lines", failure, first.Report.Lines)
	}
	second, failure := askAbout(t, &again, map[string]any{"tried": tried})
	one, _ := json.Marshal(first.Report)
	other, _ := json.Marshal(second.Report)
	if failure.Message != "" || string(one) != string(other) {
		t.Errorf("packed by zstd: got %+v and\n%s, want\n%s", failure, other, one)
	}
	found, failure := askAbout(t, bytes.NewReader(packed), map[string]any{"suggest": "refuse 0.1% of clients"})
	if failure.Message != "" || found.Suggestions == nil || found.Suggestions.Proposed.Limit != "token bucket 1/m burst 75" || found.Report.Limits[0].Limit != "token bucket 1/m burst 75" {
		t.Errorf("got %+v and %+v", failure, found.Suggestions)
	}
}

func TestBadLogsGetASentence(t *testing.T) {
	packed := open(t, realLog)
	for name, c := range map[string]struct {
		log  io.Reader
		want string
	}{
		"empty":      {strings.NewReader(""), "the input is empty"},
		"half":       {bytes.NewReader(packed[:len(packed)/2]), "unexpected EOF"},
		"binary":     {bytes.NewReader(bytes.Repeat([]byte{0, 1, 2, 250, '\n'}, 10_000)), "none of 10,000 lines could be read"},
		"one line":   {io.LimitReader(endless('x'), 200<<20), "none of 1 line could be read"},
		"zstd alone": {strings.NewReader("\x28\xb5\x2f\xfdxxxxxxxxxxxxxxxx"), "replay: read access.log"},
	} {
		_, failure := askAbout(t, c.log, map[string]any{"tried": []string{"1/s"}})
		if !strings.Contains(failure.Message, c.want) || len(failure.Hints) == 0 {
			t.Errorf("%s: got %+v, want %q and a hint", name, failure, c.want)
		}
	}
	for want, question := range map[string]map[string]any{
		`key: `: {"key": "ip,,"}, `format: `: {"format": "nonsense"}, `unexpected "bukket"`: {"tried": []string{"token bukket 1/s"}},
		`suggest: `: {"suggest": "refuse"}, "7 limits, want at most 6": {"tried": strings.Split("1/s 1/s 1/s 1/s 1/s 1/s 1/s", " ")},
	} {
		if _, failure := askAbout(t, bytes.NewReader(packed), question); !strings.Contains(failure.Message, want) || len(failure.Hints) == 0 {
			t.Errorf("%v: got %+v, want %q and a hint", question, failure, want)
		}
	}
	_, failure := askAbout(t, strings.NewReader("nonsense\u202e\n"), map[string]any{"tried": []string{"1/s"}})
	if len(failure.Unread) != 1 || failure.Unread[0].Line != 1 || failure.Unread[0].Reason == "" || failure.Unread[0].Text != "nonsense\ufffd" {
		t.Errorf("of a log without a readable line: got %+v", failure)
	}
	if _, failure := ask[Logged](t, `{"do":"log","key":"ip"}`); !strings.Contains(failure.Message, "no log") {
		t.Errorf("without a log: got %+v", failure)
	}
}

// endless repeats a byte.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

// What is in use is told without its garbage, where that decides whether a log fits.
func TestGarbageEndsNoReading(t *testing.T) {
	garbage := make([]byte, 64<<20)
	with := inUse(1 << 40)
	runtime.KeepAlive(garbage)
	if without := inUse(0); without == 0 || with < without+60<<20 {
		t.Errorf("%d bytes are in use without garbage, and %d with 64 MB of it", without, with)
	}
}
