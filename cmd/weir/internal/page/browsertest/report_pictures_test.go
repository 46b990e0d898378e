package browsertest

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var writeReports = flag.Bool("write-report", false, "write the pictures of a report in docs/pictures")

// The pictures of a report stand in the documentation. With -write-report, which `make docs` gives, they are made again.
func TestThePicturesOfTheReport(t *testing.T) {
	const folder = "../../../../../docs/pictures"
	if *writeReports {
		url, _ := writeReport(t, "replay", "--limit", "token bucket 1/m burst 75", "--limit", "sliding window 60/1m", realLog)
		b := newTab(t)
		for _, p := range []struct {
			name, scheme  string
			width, height int64
		}{{"report.png", "light", 1040, 1400}, {"report-dark.png", "dark", 1040, 1400}, {"report-phone.png", "light", 360, 740}} {
			b.open(url, p.width, p.height, p.scheme)
			b.picture(filepath.Join(folder, p.name))
		}
	}
	for _, name := range []string{"report.png", "report-dark.png", "report-phone.png"} {
		if picture, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !bytes.HasPrefix(picture, []byte("\x89PNG")) {
			t.Errorf("%s is no picture (%v); make docs writes it", name, err)
		}
	}
}
