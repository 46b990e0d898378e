// Package report writes what a replay or a simulation found as one page that goes into a mail: the answer in words, pictures that
// each answer a question, tables, and how the numbers came about. The numbers are those of --format json.
package report

import (
	"cmp"
	"errors"
	"os"
	"runtime/debug"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/page"
)

// Bounds of a page, which says where they cut.
const (
	MostRows      = 200     // of a table
	MostTimelines = 10      // of the clients that a limit refuses most
	mostDrawn     = 6       // limits with pictures and tables of their own
	mostBytes     = 400_000 // of the file
	mostText      = 100     // characters of a name
)

// Content is the content of a page: a Replay or a Comparison.
type Content interface {
	// view returns the page. No table has more rows than that.
	view(rows int) view
}

// Write writes the page to a file.
func Write(name string, c Content) error {
	content, err := Bytes(c)
	if err != nil {
		return err
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}

// Bytes returns the page. Its tables get shorter until it fits its bound.
func Bytes(c Content) (content []byte, err error) {
	for rows := MostRows; ; rows /= 2 {
		v := c.view(rows)
		content, err := page.Document{Title: v.Title, Body: v.html(), Data: v.Charts, Script: script}.Bytes()
		if err != nil || len(content) <= mostBytes || rows == 0 {
			return content, err
		}
	}
}

// maker names the program and its version.
func maker() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "weir"
	}
	return "weir " + strings.Trim(cmp.Or(info.Main.Version, "devel"), "()")
}
