package cli

import (
	"os"
	"path/filepath"
	"strings"
)

// FileUse is the use that a command makes of a file.
type FileUse struct {
	Purpose string // as people name it, such as --report
	Path    string // need not exist; a directory stands for the rules files in it; empty for none
	Writes  bool
	stream  any // in place of the path
}

// StreamUse is the use of a standard stream, which may be a file.
func StreamUse(purpose string, stream any, writes bool) FileUse {
	return FileUse{Purpose: purpose, Writes: writes, stream: stream}
}

// Apart refuses a file that has two uses if one writes it: each would destroy the data of the other. Links and hard links
// to a file are that file. Call it before anything is written.
func Apart(command string, uses ...FileUse) error {
	var known []located
	for _, u := range uses {
		at, ok := locate(u)
		if !ok {
			continue
		}
		for _, other := range known {
			if !other.Writes && !at.Writes || other.stream != nil && at.stream != nil && other.Writes && at.Writes || !other.is(&at) && !at.is(&other) {
				continue
			}
			return Misusef("nothing was written; give each a file of its own", "%s: %s and %s are one file", command, other.text(), at.text())
		}
		known = append(known, at)
	}
	return nil
}

// located is a file with its place.
type located struct {
	FileUse
	place string      // without links
	info  os.FileInfo // nil if there is no file yet
}

func (l *located) text() string {
	if l.Path == "" {
		return l.Purpose
	}
	return l.Purpose + " " + Printable(l.Path)
}

// locate finds the file of a use. It finds none of a terminal, a pipe or another device, which nothing overwrites.
func locate(u FileUse) (at located, ok bool) {
	at.FileUse = u
	if u.stream != nil {
		file, isFile := u.stream.(*os.File)
		if !isFile {
			return at, false
		}
		info, err := file.Stat()
		at.info = info
		return at, err == nil && info.Mode().IsRegular()
	}
	if u.Path == "" || u.Path == "-" {
		return at, false
	}
	at.place = placeOf(u.Path)
	if info, err := os.Stat(u.Path); err == nil {
		at.info = info
	}
	return at, at.info == nil || at.info.Mode().IsRegular() || at.info.IsDir()
}

// mostLinks bounds the links that lead to a file.
const mostLinks = 32

// placeOf returns the path of a file that need not exist, without links.
func placeOf(path string) string {
	for range mostLinks {
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			folder, _ := filepath.Split(path)
			target = folder + target // not cleaned: a folder may be a link
		}
		path = target
	}
	folder, name := filepath.Split(path)
	if folder == "" {
		folder = "."
	}
	if straight, err := filepath.EvalSymlinks(folder); err == nil {
		folder = straight
	}
	if full, err := filepath.Abs(folder); err == nil {
		folder = full
	}
	return filepath.Join(folder, name)
}

// is reports whether the other file is this one, or one of the rules files in this directory.
func (l *located) is(other *located) bool {
	if l.info != nil && l.info.IsDir() {
		return l.has(other)
	}
	if l.info != nil && other.info != nil {
		return os.SameFile(l.info, other.info)
	}
	return l.place != "" && l.place == other.place
}

// has reports whether a file is one of the rules files in this directory, or would be if it were written.
func (l *located) has(file *located) bool {
	if folder, err := os.Stat(filepath.Dir(file.place)); err == nil && file.place != "" && os.SameFile(folder, l.info) && isRules(file.place) {
		return true
	}
	entries, _ := os.ReadDir(l.Path) // one that cannot be read is refused by its reader
	for _, entry := range entries {
		if info, err := os.Stat(filepath.Join(l.Path, entry.Name())); err == nil && file.info != nil && isRules(entry.Name()) && os.SameFile(info, file.info) {
			return true
		}
	}
	return false
}

// isRules reports whether a file in a directory is read as rules.
func isRules(name string) bool {
	extension := strings.ToLower(filepath.Ext(name))
	return extension == ".yaml" || extension == ".yml"
}

// Beside returns the uses of a file and of those beside it, whose names have further ends. Without a file there are none.
func (u FileUse) Beside(ends ...string) (uses []FileUse) {
	if u.Path == "" {
		return nil
	}
	for _, end := range append([]string{""}, ends...) {
		uses = append(uses, FileUse{Purpose: u.Purpose, Path: u.Path + end, Writes: u.Writes})
	}
	return uses
}
