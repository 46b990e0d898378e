package nginx

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// directive is one directive of a configuration.
type directive struct {
	words []string // the name and its arguments, without quotes
	block []*directive
	file  string
	line  int
}

func (d *directive) name() string { return d.words[0] }

// arg returns an argument, or "".
func (d *directive) arg(i int) string {
	if i+1 < len(d.words) {
		return d.words[i+1]
	}
	return ""
}

// last returns the last word.
func (d *directive) last() string { return d.words[len(d.words)-1] }

// String shows the directive as it may stand in the file.
func (d *directive) String() string { return strings.Join(d.words, " ") }

// The bounds of a configuration.
const (
	maxFiles = 1000
	maxBytes = 8 << 20 // of all files
	maxDepth = 64      // of blocks and includes
)

// parser reads a configuration and the files that it includes.
type parser struct {
	files  fs.FS
	root   string // of files, in notes and errors
	folder string // of the first file, where included files lie
	count  int
	bytes  int
}

// parse reads a file.
func parse(files fs.FS, root, name string) ([]*directive, error) {
	p := &parser{files: files, root: root, folder: path.Dir(name)}
	return p.file(name, 0)
}

// read reads a file up to the first byte that is too many.
func (p *parser) read(name string) ([]byte, error) {
	file, err := p.files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, int64(maxBytes-p.bytes+1)))
}

func (p *parser) file(name string, depth int) ([]*directive, error) {
	text, err := p.read(name)
	if err != nil {
		return nil, err
	}
	p.count, p.bytes = p.count+1, p.bytes+len(text)
	if p.count > maxFiles || p.bytes > maxBytes {
		return nil, fmt.Errorf("%s: the configuration has more than %d files or %d bytes", p.root+name, maxFiles, maxBytes)
	}
	w := &words{text: string(text), file: p.root + name, line: 1}
	all, err := p.block(w, depth, false)
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %w", w.file, w.line, err)
	}
	return all, nil
}

// isLua reports whether the block of a directive is Lua.
func isLua(name string) bool { return strings.HasSuffix(name, "_by_lua_block") }

// block reads directives up to the closing brace, or to the end of the file.
func (p *parser) block(w *words, depth int, closed bool) (all []*directive, err error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("more than %d blocks and includes within one another", maxDepth)
	}
	for {
		d := &directive{file: w.file}
		end, err := w.directive(d)
		switch {
		case err != nil:
			return nil, err
		case end == '}' && closed && len(d.words) == 0, end == 0 && !closed && len(d.words) == 0:
			return all, nil
		case end == '}' && len(d.words) > 0:
			return nil, fmt.Errorf("%q is followed by '}', want ';' before it", d)
		case end == 0:
			return nil, errors.New("the file ends within a directive or a block")
		case end == '}':
			return nil, errors.New("unexpected '}'")
		case len(d.words) == 0:
			return nil, fmt.Errorf("unexpected %q", end)
		case end == '{' && isLua(d.name()):
			err = w.skipLua()
		case end == '{':
			d.block, err = p.block(w, depth+1, true)
		case d.name() == "include":
			included, err := p.include(d, depth)
			if err != nil {
				return nil, err
			}
			all = append(all, included...)
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
}

// include reads the files that a pattern names. A pattern of no files is no error, as in nginx; a missing file is.
func (p *parser) include(d *directive, depth int) (all []*directive, err error) {
	pattern := strings.TrimPrefix(d.arg(0), "/")
	if !path.IsAbs(d.arg(0)) {
		pattern = path.Join(p.folder, d.arg(0))
	}
	names := []string{pattern}
	if strings.ContainsAny(pattern, "*?[") {
		if names, err = fs.Glob(p.files, pattern); err != nil {
			return nil, fmt.Errorf("include %s: %w", d.arg(0), err)
		}
	}
	for _, name := range names {
		read, err := p.file(name, depth+1)
		if err != nil {
			return nil, fmt.Errorf("include: %w", err)
		}
		all = append(all, read...)
	}
	return all, nil
}
