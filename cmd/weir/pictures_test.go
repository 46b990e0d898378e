package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// plotted is a command of docs/why/algorithms.md that draws a picture of it.
var plotted = regexp.MustCompile(`(?m)^    (weir .* --plot (docs/pictures/\S+))$`)

// The pictures of docs/why/algorithms.md are what its commands draw. `make docs` draws them.
func TestThePicturesOfTheAlgorithmsAreWhatTheProgramDraws(t *testing.T) {
	t.Chdir("../..")
	page, err := os.ReadFile("docs/why/algorithms.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := plotted.FindAllStringSubmatch(string(page), -1)
	if len(commands) == 0 {
		t.Fatal("docs/why/algorithms.md draws no picture")
	}
	for _, command := range commands {
		tour := &tour{t: t, pictures: t.TempDir()}
		if *writeDocs {
			tour.pictures = tourPictures
		}
		tour.run(command[1])
		drawn, err := os.ReadFile(filepath.Join(tour.pictures, filepath.Base(command[2])))
		if err != nil {
			t.Fatal(err)
		}
		tour.compare(command[2], drawn)
	}
}
