package unpack

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
)

func TestWhatZstdHasPackedIsUnpacked(t *testing.T) {
	text := strings.Repeat("a line of a log\n", 10_000)
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed)
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		from io.Reader
		want string
	}{
		"packed": {bytes.NewReader(packed.Bytes()), text}, "packed, byte by byte": {iotest.OneByteReader(bytes.NewReader(packed.Bytes())), text},
		"plain": {strings.NewReader(text), text}, "short": {strings.NewReader("x"), "x"}, "empty": {strings.NewReader(""), ""},
	} {
		got, err := io.ReadAll(Reader(c.from))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %d bytes (%v), want %d", name, len(got), err, len(c.want))
		}
	}
	half := packed.Bytes()
	if _, err := io.ReadAll(Reader(bytes.NewReader(half[:len(half)/2]))); err == nil {
		t.Error("half a file is read without an error")
	}
}
