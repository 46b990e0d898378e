package nginx

import (
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// endless is a file without an end, which counts what is read of it.
type endless struct {
	fstest.MapFS
	read int
}

func (e *endless) Open(name string) (fs.File, error) {
	if name != "endless" {
		return e.MapFS.Open(name)
	}
	return e, nil
}

func (e *endless) Read(b []byte) (int, error) {
	if e.read > 10*maxBytes {
		return 0, io.ErrUnexpectedEOF
	}
	for i := range b {
		b[i] = ' '
	}
	e.read += len(b)
	return len(b), nil
}

func (e *endless) Close() error               { return nil }
func (e *endless) Stat() (fs.FileInfo, error) { return e, nil }
func (e *endless) Name() string               { return "endless" }
func (e *endless) Size() int64                { return 0 }
func (e *endless) Mode() fs.FileMode          { return fs.ModeNamedPipe }
func (e *endless) ModTime() time.Time         { return time.Time{} }
func (e *endless) IsDir() bool                { return false }
func (e *endless) Sys() any                   { return nil }

func TestAnIncludedFileWithoutAnEndIsReadUpToTheBound(t *testing.T) {
	files := &endless{MapFS: fstest.MapFS{"nginx.conf": {Data: []byte("http { include endless; }")}}}
	_, err := Import(files, "", "nginx.conf")
	if err == nil || !strings.Contains(err.Error(), "has more than") || files.read > 2*maxBytes {
		t.Errorf("got %v after %d bytes, want an error about the bound of %d", err, files.read, maxBytes)
	}
}
