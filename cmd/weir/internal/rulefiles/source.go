// Package rulefiles reads rules from files and directories, and again when they change. Package rules parses them, and
// package lint warns of texts without effect.
package rulefiles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/lint"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// The bounds of files.
const (
	maxFile  = 8 << 20
	maxFiles = 32 << 20
)

// Options configure Load.
type Options struct {
	rules.Options
	// Stdin is read for the path "-". Default: there is no such path.
	Stdin io.Reader
	// Parse reads files of another format. Default: rules.Parse.
	Parse func(o rules.Options, files ...rules.File) (*rules.Config, error)
}

// Load reads the files and directories. The error is rules.Problems.
func Load(o Options, paths ...string) (*rules.Config, error) {
	files, problems := o.read(paths)
	return o.parse(files, problems)
}

// Lint is Load, with warnings about texts without effect.
func Lint(o Options, paths ...string) (config *rules.Config, warnings rules.Problems, err error) {
	files, problems := o.read(paths)
	if config, err = o.parse(files, problems); err != nil {
		return nil, nil, err
	}
	return config, o.lint(config, files, paths), nil
}

// parse parses files, and adds the problems of reading them.
func (o Options) parse(files []rules.File, problems rules.Problems) (*rules.Config, error) {
	parse := rules.Parse
	if o.Parse != nil {
		parse = o.Parse
	}
	config, err := parse(o.Options, files...)
	if more, ok := err.(rules.Problems); ok {
		problems = append(problems, more...)
	}
	if problems != nil {
		return nil, problems
	}
	return config, nil
}

// lint warns of texts without effect in files, and of files beside them that are not read.
func (o Options) lint(config *rules.Config, files []rules.File, paths []string) rules.Problems {
	return append(lint.Warnings(config, files...), o.unreadFiles(paths)...)
}

// read reads the files of paths, and the YAML files of directories. Other files there are a problem in another
// format, whose program reads them.
func (o Options) read(paths []string) (files []rules.File, problems rules.Problems) {
	left := int64(maxFiles)
	fail := func(name string, err error) {
		problems = append(problems, rules.Problem{File: name, Text: plainError(err)})
	}
	for _, path := range paths {
		if path == "-" && o.Stdin != nil {
			content, err := readAll(o.Stdin, min(left, maxFile))
			if err != nil {
				fail(path, err)
			}
			left -= int64(len(content))
			files = append(files, rules.File{Name: "-", Content: content})
			continue
		}
		names, err := filesOf(path)
		if err != nil {
			fail(path, err)
			continue
		}
		for _, name := range names {
			content, err := readFile(name, min(left, maxFile), name == path)
			if err != nil {
				fail(name, err)
				continue
			}
			left -= int64(len(content))
			files = append(files, rules.File{Name: name, Content: content})
		}
		if name := unread(path, func(string) bool { return true }); o.Parse != nil && name != "" {
			fail(name, errors.New("is not read; of a folder, files that end in .yaml or .yml are: rename it, or name its folder with --config, too"))
		}
	}
	return files, problems
}

// unread returns a file within a directory that is not read and that counts, or "". Names that begin with a dot do not count.
func unread(dir string, counts func(path string) bool) (name string) {
	root := dir + "/." // of a link, too
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || path == root:
		case strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
		case !d.IsDir() && counts(path) && (filepath.Dir(path) != filepath.Clean(dir) || !isRules(path)):
			name = path
			return fs.SkipAll
		}
		return nil
	})
	return name
}

// unreadFiles warns of files in directories that look like rules and are not read.
func (o Options) unreadFiles(paths []string) (warnings rules.Problems) {
	if o.Parse != nil { // where they are problems
		return nil
	}
	for _, path := range paths {
		if name := unread(path, looksLikeRules); name != "" && path != "-" {
			warnings = append(warnings, rules.Problem{File: name, Text: "is not read: of a directory, files in it that end in .yaml or .yml are"})
		}
	}
	return warnings
}

func looksLikeRules(path string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(path)))
}

// filesOf returns the file, or the files of a directory.
func filesOf(path string) (names []string, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if isRules(e.Name()) {
			names = append(names, filepath.Join(path, e.Name()))
		}
	}
	if len(names) == 0 {
		return nil, errors.New("is a directory without files that end in .yaml or .yml")
	}
	slices.Sort(names)
	return names, nil
}

// isRules reports whether a file of a directory is read.
func isRules(name string) bool {
	extension := filepath.Ext(name)
	return !strings.HasPrefix(filepath.Base(name), ".") && (extension == ".yaml" || extension == ".yml")
}

// readFile reads up to a number of bytes. named says that the file was named itself, and not its directory: then it may be a
// pipe.
func readFile(name string, most int64, named bool) ([]byte, error) {
	switch info, err := os.Stat(name); {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("is a directory, want a file")
	case !named && !info.Mode().IsRegular(): // a pipe without a writer would hold up all reloads
		return nil, errors.New("is no regular file")
	case info.Mode().IsRegular() && info.Size() > most:
		return nil, errTooLarge
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return readAll(file, most)
}

var errTooLarge = fmt.Errorf("is too large, want at most %d MiB a file and %d MiB in all", maxFile>>20, maxFiles>>20)

// readAll reads up to a number of bytes.
func readAll(in io.Reader, most int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(content)) > most {
		return nil, errTooLarge
	}
	return content, err
}

// plainError returns the message without the operation and the path.
func plainError(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err.Error()
	}
	return err.Error()
}
