package nginx

import (
	"errors"
	"fmt"
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
	folder string // of the first file, in which included files lie
	count  int
	bytes  int
}

// parse reads a file.
func parse(files fs.FS, root, name string) ([]*directive, error) {
	p := &parser{files: files, root: root, folder: path.Dir(name)}
	return p.file(name, 0)
}

func (p *parser) file(name string, depth int) ([]*directive, error) {
	text, err := fs.ReadFile(p.files, name)
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

// isForeign reports whether the block of a directive is in another language.
func isForeign(name string) bool { return strings.HasSuffix(name, "_by_lua_block") }

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
		case end == 0:
			return nil, errors.New("the file ends within a directive or a block")
		case end == '}':
			return nil, errors.New("unexpected '}'")
		case len(d.words) == 0:
			return nil, fmt.Errorf("unexpected %q", end)
		case end == '{' && isForeign(d.name()):
			err = w.skipBlock()
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

// words splits a text into words and marks.
type words struct {
	text string
	at   int
	file string
	line int
}

// directive reads words up to a mark: ; { } or 0 at the end of the text.
func (w *words) directive(d *directive) (mark byte, err error) {
	for {
		w.skipSpace()
		if w.at == len(w.text) {
			return 0, nil
		}
		if len(d.words) == 0 {
			d.line = w.line
		}
		switch c := w.text[w.at]; c {
		case ';', '{', '}':
			w.at++
			return c, nil
		case '"', '\'':
			word, err := w.quoted(c)
			if err != nil {
				return 0, err
			}
			d.words = append(d.words, word)
		default:
			d.words = append(d.words, w.plain())
		}
	}
}

func (w *words) skipSpace() {
	for ; w.at < len(w.text); w.at++ {
		switch w.text[w.at] {
		case '\n':
			w.line++
		case ' ', '\t', '\r':
		case '#':
			end := strings.IndexByte(w.text[w.at:], '\n')
			if end < 0 {
				w.at = len(w.text)
				return
			}
			w.at += end - 1
		default:
			return
		}
	}
}

// quoted reads a word in quotes.
func (w *words) quoted(quote byte) (string, error) {
	var word strings.Builder
	for w.at++; w.at < len(w.text); w.at++ {
		switch c := w.text[w.at]; {
		case c == quote:
			w.at++
			return word.String(), nil
		case c == '\\' && w.at+1 < len(w.text) && (w.text[w.at+1] == quote || w.text[w.at+1] == '\\'):
			w.at++
			word.WriteByte(w.text[w.at])
		default:
			if c == '\n' {
				w.line++
			}
			word.WriteByte(c)
		}
	}
	return "", errors.New("a quoted word has no end")
}

// plain reads a word without quotes. Braces belong to it after a $, and escaped marks do.
func (w *words) plain() string {
	var word strings.Builder
	for ; w.at < len(w.text); w.at++ {
		c := w.text[w.at]
		switch {
		case strings.IndexByte(" \t\r\n;", c) >= 0:
			return word.String()
		case c == '{' && strings.HasSuffix(word.String(), "$"):
			end := strings.IndexByte(w.text[w.at:], '}')
			if end < 0 {
				return word.String()
			}
			word.WriteString(w.text[w.at : w.at+end+1])
			w.at += end
			continue
		case c == '{' && !isRepeat(w.text[w.at:]):
			return word.String()
		case c == '\\' && w.at+1 < len(w.text):
			word.WriteByte(c)
			w.at++
			c = w.text[w.at]
		}
		if c == '\n' {
			w.line++
		}
		word.WriteByte(c)
	}
	return word.String()
}

// isRepeat reports whether a text begins with a count of a regular expression, like {2} or {1,3}.
func isRepeat(text string) bool {
	end := strings.IndexByte(text, '}')
	return end > 1 && strings.Trim(text[1:end], "0123456789,") == ""
}

// skipBlock passes over a block of another language. Its braces are assumed to be paired.
func (w *words) skipBlock() error {
	for depth := 1; w.at < len(w.text); w.at++ {
		switch w.text[w.at] {
		case '\n':
			w.line++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				w.at++
				return nil
			}
		}
	}
	return errors.New("a block has no end")
}
