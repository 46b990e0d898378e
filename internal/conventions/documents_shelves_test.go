package conventions

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// This file holds docs/ to its shelves: start, howto, reference, why, from for those who come from another limiter, and develop for those
// who change the code.

// longestHowto is how many lines of one task a reader has patience for, without the code that he copies.
const longestHowto = 200

func TestHowtoPagesAreShort(t *testing.T) {
	for _, page := range pages(t, "docs/howto") {
		if lines := strings.Count(fenced.ReplaceAllString(readFile(t, page), ""), "\n"); lines > longestHowto {
			t.Errorf("%s has %d lines, want at most %d: split it, or move what is looked up to docs/reference", page, lines, longestHowto)
		}
	}
}

var testName = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z][A-Za-z0-9]+`)

var (
	hash   = regexp.MustCompile(`\b[0-9a-f]{7,12}\b`) // as git abbreviates it
	digit  = regexp.MustCompile(`[0-9]`)
	letter = regexp.MustCompile(`[a-f]`)
)

// Users want the promise. internal/conventions/PROMISES.md names its proof, and the reports of bench the commit of a figure.
func TestPagesForUsersNameNoTestAndNoCommit(t *testing.T) {
	for _, page := range append(pages(t, "docs"), "README.md") {
		if strings.HasPrefix(page, "docs/develop/") {
			continue
		}
		prose := fenced.ReplaceAllString(readFile(t, page), "")
		for _, name := range testName.FindAllString(prose, -1) {
			t.Errorf("%s names %s, which belongs in a row of internal/conventions/PROMISES.md", page, name)
		}
		if strings.HasPrefix(page, "docs/from/") {
			continue // names versions of other limiters
		}
		for _, name := range hash.FindAllString(prose, -1) {
			if digit.MatchString(name) && letter.MatchString(name) {
				t.Errorf("%s names the commit %s, which belongs in a report of bench", page, name)
			}
		}
	}
}

func TestEveryPageIsReachableFromTheIndex(t *testing.T) {
	reached := map[string]bool{}
	next := []string{"docs/README.md"}
	for len(next) > 0 {
		page := next[0]
		next = next[1:]
		if reached[page] || !strings.HasPrefix(page, "docs/") || filepath.Ext(page) != ".md" {
			continue
		}
		reached[page] = true
		for _, to := range linksOf(t, page) {
			next = append(next, to.file)
		}
	}
	for _, page := range pages(t, "docs") {
		if !reached[page] {
			t.Errorf("no link leads from docs/README.md to %s", page)
		}
	}
}

func TestDocumentsLinkToHeadingsThatExist(t *testing.T) {
	for _, page := range documents(t) {
		for _, to := range linksOf(t, page) {
			if to.anchor != "" && filepath.Ext(to.file) == ".md" && !slices.Contains(anchors(readFile(t, to.file)), to.anchor) {
				t.Errorf("%s links to %s#%s, and there is no such heading", page, to.file, to.anchor)
			}
		}
	}
}

// A page that is merged into another leaves a redirect on the site, in a row of site/redirects.json.
func TestRedirectsLeadFromPagesThatAreGone(t *testing.T) {
	var redirects map[string]string
	if err := json.Unmarshal([]byte(readFile(t, "site/redirects.json")), &redirects); err != nil {
		t.Fatal(err)
	}
	for from, to := range redirects {
		if _, err := os.Stat(filepath.Join("docs", from)); err == nil {
			t.Errorf("site/redirects.json leads away from docs/%s, which exists", from)
		}
		page, anchor, _ := strings.Cut(to, "#")
		if anchor != "" && !slices.Contains(anchors(readFile(t, page)), anchor) {
			t.Errorf("site/redirects.json leads to %s, and there is no such heading", to)
		} else if _, err := os.Stat(page); err != nil {
			t.Errorf("site/redirects.json leads to %s: %v", to, err)
		}
	}
}

var pathOfPage = regexp.MustCompile(`\b(docs/[A-Za-z0-9_/-]+\.md)\b(?:#([a-z0-9_-]+))?`)

// Error texts, helps, comments and configurations name pages by their paths, some with a heading.
func TestThePathsOfPagesExist(t *testing.T) {
	inRoot()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "docs"):
			return fs.SkipDir
		case entry.IsDir() || !slices.Contains(namesPages, filepath.Ext(name)) && name != "Makefile":
			return nil
		}
		for _, match := range pathOfPage.FindAllStringSubmatch(readFile(t, path), -1) {
			page, anchor := match[1], match[2]
			if _, err := os.Stat(page); err != nil {
				t.Errorf("%s names %s, which does not exist", path, page)
			} else if anchor != "" && !slices.Contains(anchors(readFile(t, page)), anchor) {
				t.Errorf("%s names %s#%s, and there is no such heading", path, page, anchor)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// namesPages are the kinds of files that name pages.
var namesPages = []string{".go", ".sh", ".lua", ".txtar", ".cfg", ".conf", ".service", ".yml", ".yaml", ".json", ".proto"}

func pages(t *testing.T, folder string) (paths []string) {
	t.Helper()
	for _, document := range documents(t) {
		if strings.HasPrefix(document, folder+"/") {
			paths = append(paths, document)
		}
	}
	if len(paths) < 5 {
		t.Fatalf("%d pages below %s, want more", len(paths), folder)
	}
	return paths
}

type target struct{ file, anchor string }

var (
	linkOrAnchor = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)
	fenced       = regexp.MustCompile("(?ms)^```.*?^```$")
	heading      = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInAnchor  = regexp.MustCompile(`[^\pL\pN _-]`)
	linkText     = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)
)

// linksOf returns what a page links to within the project.
func linksOf(t *testing.T, page string) (targets []target) {
	t.Helper()
	for _, match := range linkOrAnchor.FindAllStringSubmatch(fenced.ReplaceAllString(readFile(t, page), ""), -1) {
		if strings.Contains(match[1], ":") {
			continue
		}
		file := page
		if match[1] != "" {
			file = filepath.Join(filepath.Dir(page), match[1])
		}
		targets = append(targets, target{file, match[2]})
	}
	return targets
}

// anchors returns the anchors that GitHub and the site give to the headings of a text.
func anchors(text string) (names []string) {
	for _, match := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		plain := linkText.ReplaceAllString(match[1], "$1")
		names = append(names, strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(plain), ""), " ", "-"))
	}
	return names
}
