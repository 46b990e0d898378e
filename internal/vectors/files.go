package vectors

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"testing"
)

//go:embed files
var embedded embed.FS

// vectorsVariable names an environment variable. It holds a folder of vectors that replaces the embedded one.
const vectorsVariable = "WEIR_VECTORS"

// File is one file of vectors.
type File struct {
	Name      string
	Scenarios []Scenario
	Dialects  []Dialect
}

// Dialect is a scenario in a format of its own: nginx_limit_req or guava.
type Dialect struct {
	ID        string
	Algorithm string
	Line      []byte // JSON
}

// Files reads the vectors of this package, or of the folder that WEIR_VECTORS names. A file that it cannot read fails
// the test.
func Files(t testing.TB) []File {
	t.Helper()
	folder, err := fs.Sub(embedded, "files")
	if name := os.Getenv(vectorsVariable); name != "" {
		t.Logf("vectors of %s=%s", vectorsVariable, name)
		folder, err = os.DirFS(name), nil
	}
	var files []File
	if err == nil {
		files, err = readFiles(folder)
	}
	if err != nil {
		t.Fatalf("limittest: vectors: %v", err)
	}
	return files
}

func readFiles(folder fs.FS) ([]File, error) {
	names, err := fs.Glob(folder, "*.jsonl")
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New("the folder has no .jsonl files")
	}
	var files []File
	for _, name := range names {
		content, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, err
		}
		file, err := parseFile(path.Base(name), content)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

func parseFile(name string, content []byte) (File, error) {
	file := File{Name: name}
	number := 0
	for line := range bytes.Lines(content) {
		number++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := file.add(line); err != nil {
			return File{}, fmt.Errorf("%s line %d: %w", name, number, err)
		}
	}
	if len(file.Scenarios)+len(file.Dialects) == 0 {
		return File{}, fmt.Errorf("%s: holds no scenario", name)
	}
	return file, nil
}

// add parses one line. It refuses a field that it does not know, because nothing would check that field. Dialect
// lines stay unparsed.
func (f *File) add(line []byte) error {
	var header struct {
		ID, Kind string
		Params   Params
	}
	if err := json.Unmarshal(line, &header); err != nil && header.ID == "" {
		return err
	}
	dialect, err := dialectOf(header.Kind, header.Params)
	if err != nil {
		return fmt.Errorf("%s: %w", header.ID, err)
	}
	if dialect != "" {
		f.Dialects = append(f.Dialects, Dialect{ID: header.ID, Algorithm: dialect, Line: bytes.Clone(line)})
		return nil
	}
	var s Scenario
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return fmt.Errorf("%s: %w", header.ID, err)
	}
	if err := s.check(); err != nil {
		return fmt.Errorf("%s: %w", header.ID, err)
	}
	f.Scenarios = append(f.Scenarios, s)
	return nil
}

// dialectOf returns the dialect of a line, or "" if the line has none.
func dialectOf(kind string, params Params) (string, error) {
	names := params.algorithms()
	if kind != "" {
		names = []string{guava}
	}
	if len(names) == 0 {
		return "", errors.New("composite without limits")
	}
	for _, name := range names {
		switch {
		case dialects[name] != "" && len(names) == 1 && params.Algo != composite:
			return name, nil
		case limits[name] == nil:
			return "", fmt.Errorf("unknown algorithm %q", name)
		}
	}
	return "", nil
}

// check refuses a scenario that proves nothing.
func (s Scenario) check() error {
	if len(s.Ops) == 0 {
		return errors.New("has no operations")
	}
	leaky := slices.Contains(s.Params.algorithms(), "leaky_queue")
	for i, op := range s.Ops {
		if op.Verb == ChangeLimit {
			if err := op.checkChange(); err != nil {
				return fmt.Errorf("op %d: %w", i, err)
			}
			continue
		}
		if op.Params != nil {
			return fmt.Errorf("op %d: params without the verb limit", i)
		}
		if !slices.Contains([]string{Allow, Peek, Reserve}, op.Verb) {
			return fmt.Errorf("op %d: unknown verb %q", i, op.Verb)
		}
		w := op.Want
		if w.Error != "" {
			continue
		}
		if w.Allowed == nil || w.Remaining == nil || w.RetryAfter == nil || w.ResetAfter == nil {
			return fmt.Errorf("op %d: want lacks allowed, remaining, retry_after or reset_after", i)
		}
		if w.Delay == nil && (leaky || op.Verb == Reserve) {
			return fmt.Errorf("op %d: want lacks delay", i)
		}
		if w.Limit == nil && s.Limit == nil {
			return fmt.Errorf("op %d: want lacks limit", i)
		}
	}
	return nil
}

// checkChange refuses a change to no limit, and one that also is an operation.
func (op Op) checkChange() error {
	if op.Params == nil {
		return errors.New("limit lacks params")
	}
	if op != (Op{Verb: ChangeLimit, Params: op.Params}) {
		return errors.New("limit has more than params")
	}
	dialect, err := dialectOf("", *op.Params)
	if err == nil && dialect != "" {
		err = fmt.Errorf("limit of the dialect %s", dialect)
	}
	return err
}
