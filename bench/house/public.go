package main

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// notPublic are the folders whose packages nobody else imports.
var notPublic = []string{"bench", "cmd", "deploy", "docs", "examples", "internal", "node_modules", "site", "testdata"}

// counted is the number of names of a package that its users may have to learn.
type counted struct {
	folder string
	names  int
}

// publicNames counts the names of all packages that others may import.
func publicNames(root string) (all []counted, sum int, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return err
		case path != root && (slices.Contains(notPublic, d.Name()) || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		}
		found, err := namesIn(path)
		if n := found.learned(); err == nil && n > 0 {
			all, sum = append(all, counted{path, n}), sum+n
		}
		return err
	})
	return all, sum, err
}

func printPublic(root string) error {
	all, sum, err := publicNames(root)
	if err != nil {
		return err
	}
	fmt.Printf("all %d public packages: %d names", len(all), sum)
	for i, c := range all {
		fmt.Printf("%s %s %d", map[bool]string{true: ":", false: ","}[i == 0], c.folder, c.names)
	}
	fmt.Println()
	return nil
}
