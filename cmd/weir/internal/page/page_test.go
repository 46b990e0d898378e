package page

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"testing"
)

// The hashes of the files in the npm package of the version. docs/develop/dependencies.md says how to get others.
var uPlotFiles = map[string]string{
	"uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
	"uPlot.min.css":     "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
	"LICENSE":           "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}

func TestTheEmbeddedFilesAreThoseOfTheVersionNamed(t *testing.T) {
	for name, text := range map[string]string{"uPlot.iife.min.js": uPlotScript, "uPlot.min.css": uPlotStyle, "LICENSE": uPlotLicence} {
		sum := sha256.Sum256([]byte(text))
		if got := hex.EncodeToString(sum[:]); got != uPlotFiles[name] {
			t.Errorf("%s of uplot %s has the hash %s, want %s", name, UPlot, got, uPlotFiles[name])
		}
	}
	if !strings.HasPrefix(uPlotScript, "/*! https://github.com/leeoniya/uPlot (v"+UPlot+") */") {
		t.Errorf("the script begins with %.60q, want the version %s", uPlotScript, UPlot)
	}
	if !strings.Contains(Script(), "Copyright (c) 2022 Leon Sorokin") {
		t.Error("the script lacks the licence of uPlot")
	}
}

// A page of the daemon may have no more than 150 KB with its own script.
func TestWhatPagesShareIsSmall(t *testing.T) {
	if got := len(Style()) + len(Script()); got > 90<<10 {
		t.Errorf("style and script have %d bytes, want 90 KiB at most", got)
	}
}

func TestADocumentAllowsOnlyWhatIsWrittenIntoIt(t *testing.T) {
	d := Document{Title: `<b>&"`, Body: "<main>body</main>", Data: map[string]string{"key": "</script><script>alert(1)</script>\u2028&"}, Script: "own()"}
	written, err := d.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	text := string(written)
	for _, tag := range []string{"style", "script"} {
		inner := regexp.MustCompile(`(?s)<`+tag+`>(.*?)</`+tag+`>`).FindAllStringSubmatch(text, -1)
		if len(inner) != 1 {
			t.Fatalf("%d elements <%s>, want 1", len(inner), tag)
		}
		if want := tag + "-src '" + hashOf(inner[0][1]) + "'"; !strings.Contains(text, want) {
			t.Errorf("the policy lacks %s", want)
		}
	}
	for _, want := range []string{"default-src 'none';", "<title>&lt;b&gt;&amp;&#34;</title>", `{"key":"\u003c/script\u003e\u003cscript\u003ealert(1)\u003c/script\u003e\u2028\u0026"}`} {
		if !strings.Contains(text, want) {
			t.Errorf("the document lacks %s", want)
		}
	}
	for _, network := range []string{"<link", "src=\"", "@import", "url(", "http-equiv=\"refresh"} {
		if strings.Contains(text, network) {
			t.Errorf("the document has %s", network)
		}
	}
}
