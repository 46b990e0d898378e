package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
)

func TestMain(m *testing.M) {
	if os.Getenv("WEIR_TEST_CRAWLER") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// table returns the table that the page about fetching shows.
func table(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/table.txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The table shows a second between two requests of one host, and half a second between any two, robots.txt included.
func TestTheTableShowsPoliteness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		if err := crawl(t.Context(), &out, web{}, "http://a.example/", "http://b.example/", "http://c.example/"); err != nil {
			t.Fatal(err)
		}
		if want := table(t); out.String() != want {
			t.Errorf("got the table\n%s\nwant\n%s", out.String(), want)
		}
	})
}

// program runs the program.
func program(t *testing.T, arguments ...string) string {
	t.Helper()
	command := exec.Command(os.Args[0], arguments...)
	command.Env = append(os.Environ(), "WEIR_TEST_CRAWLER=1")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// Without arguments, the program prints the table. A busy machine may be late.
func TestTheProgramShowsWhatItDoes(t *testing.T) {
	times := regexp.MustCompile(`(?m)^ *[\d.]+ s`)
	if got, want := times.ReplaceAllString(program(t), ""), times.ReplaceAllString(table(t), ""); got != want {
		t.Errorf("got, without times,\n%s\nwant\n%s", got, want)
	}
}

func TestTheProgramSaysWhyAURLIsNotFetched(t *testing.T) {
	if got, want := program(t, "http://127.0.0.1:1/"), "skipped  http://127.0.0.1:1/: 127.0.0.1 is a loopback address"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
