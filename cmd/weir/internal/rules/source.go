package rules

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirflow/weir"
)

// The bounds of files.
const (
	maxFile       = 8 << 20
	maxFiles      = 32 << 20
	maxRules      = 20_000
	maxAlone      = 256
	maxPatterns   = 1_000
	maxAttributes = 64
	maxPlans      = 10_000
	maxMessage    = 512
	maxName       = 128
)

// Options configure Load.
type Options struct {
	// Check returns an error for a rule that the engine cannot hold. Default: every engine holds the rules.
	Check func(rules ...*weir.Rule) error
	// Stdin is read for the path "-". Default: there is no such path.
	Stdin io.Reader
	// Parse reads files of another format. Default: the function Parse.
	Parse func(o Options, files ...File) (*Config, error)
}

// Load reads the files and directories. The error is Problems.
func Load(o Options, paths ...string) (*Config, error) {
	files, problems := o.read(paths)
	return loaded(o, paths, files, problems)
}

// loaded parses files, and adds the problems of reading them.
func loaded(o Options, paths []string, files []File, problems Problems) (*Config, error) {
	parse := Parse
	if o.Parse != nil {
		parse = o.Parse
	}
	config, err := parse(o, files...)
	if more, ok := err.(Problems); ok {
		problems = append(problems, more...)
	}
	if problems != nil {
		return nil, problems
	}
	config.Warnings = append(config.Warnings, o.unreadFiles(paths)...)
	return config, nil
}

// File is the content of a file.
type File struct {
	Name    string
	Content []byte
}

// read reads the files of paths. Of a directory it reads the files of YAML. Other files there are a problem in another
// format, whose program reads them.
func (o Options) read(paths []string) (files []File, problems Problems) {
	left := int64(maxFiles)
	fail := func(name string, err error) { problems = append(problems, Problem{File: name, Text: plainError(err)}) }
	for _, path := range paths {
		if path == "-" && o.Stdin != nil {
			content, err := readAll(o.Stdin, min(left, maxFile))
			if err != nil {
				fail(path, err)
			}
			left -= int64(len(content))
			files = append(files, File{"-", content})
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
			files = append(files, File{name, content})
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
