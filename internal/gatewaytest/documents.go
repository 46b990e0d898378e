package gatewaytest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Block is a block of a page for another program, or for Weir. A test finds it by the tag at its fence, which begins with the name
// of the program, as in ```nginx nginx/check, so that a block that moves keeps its test.
type Block struct {
	Text    string
	Command []string // the words after weir in the last line "weir serve" above the block
	After   string   // what follows on the page
}

// fenceOf matches a block with a tag. Its parts are the language, the tag and the text.
var fenceOf = regexp.MustCompile("(?ms)^```(\\S+) (\\S+/\\S+)\n(.*?)^```$")

var (
	commandLine = regexp.MustCompile(`(?m)^(?:    |\$ )weir (serve .*)$`)
	commandWord = regexp.MustCompile(`'[^']*'|\S+`)
)

// Documented returns the only block of the pages in docs/ with a tag.
func Documented(t testing.TB, tag string) (found Block) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root(t), "docs"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, at := range fenceOf.FindAllSubmatchIndex(text, -1) {
			if string(text[at[4]:at[5]]) != tag {
				continue
			}
			if found.Text != "" {
				t.Errorf("gatewaytest: %s: another block has the tag %s, too", path, tag)
			}
			found = Block{Text: string(text[at[6]:at[7]]), Command: lastCommand(string(text[:at[0]])), After: string(text[at[1]:])}
		}
		return err
	})
	if err != nil {
		t.Fatalf("gatewaytest: %v", err)
	}
	if found.Text == "" {
		t.Fatalf("gatewaytest: no block of docs/ has the tag %s", tag)
	}
	return found
}

// lastCommand returns the words of the last line "weir serve" of a page, without weir.
func lastCommand(page string) (words []string) {
	lines := commandLine.FindAllStringSubmatch(page, -1)
	if len(lines) == 0 {
		return nil
	}
	for _, word := range commandWord.FindAllString(lines[len(lines)-1][1], -1) {
		words = append(words, strings.Trim(word, "'"))
	}
	return words
}

// root returns the folder of the project, which has go.work.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatalf("gatewaytest: %v", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("gatewaytest: no folder above the test has go.work")
		}
		dir = filepath.Dir(dir)
	}
}
