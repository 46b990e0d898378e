package check

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// stub is zone data of a place an hour ahead of UTC, in the form of RFC 9636: a header, one type of time and its name.
const stub = "TZif" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
	"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x04" + "\x00\x00\x0e\x10\x00\x00" + "CET\x00"

// zipped writes a zip file with the stub.
func zipped(t *testing.T, path string, method uint16) {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	entry, err := z.CreateHeader(&zip.FileHeader{Name: "Europe/Paris", Method: method})
	if err == nil {
		_, err = entry.Write([]byte(stub))
	}
	if err = errors.Join(err, z.Close()); err == nil {
		err = os.WriteFile(path, b.Bytes(), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The data that is named has the zone, as time.LoadLocation looks for it: a folder without the zone, or whose data is none, and a
// zip file that Go does not read are passed over.
func TestTheZoneDataInUseIsNamed(t *testing.T) {
	dir := t.TempDir()
	for path, content := range map[string]string{
		"good/Europe/Paris": stub, "versioned/Europe/Paris": stub, "versioned/tzdata.zi": "# version 1999z\n", "other/Europe/Rome": stub,
		"other/tzdata.zi": "# version 1998a\n", "broken/Europe/Paris": "no zone", "none.zip": "no zip",
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	zipped(t, filepath.Join(dir, "stored.zip"), zip.Store)
	zipped(t, filepath.Join(dir, "deflated.zip"), zip.Deflate)
	usual := zoneFolders
	t.Cleanup(func() { zoneFolders = usual })
	own := "that of this program, from " + runtime.Version()
	for _, c := range []struct{ variable, folder, want string }{
		{"", "none", own},
		{"", "good", dir + "/good"},
		{"", "versioned", dir + "/versioned, of version 1999z"},
		{"", "other", own},
		{"broken", "versioned", dir + "/versioned, of version 1999z"},
		{"other", "good", dir + "/good"},
		{"stored.zip", "versioned", dir + "/stored.zip"},
		{"deflated.zip", "good", dir + "/good"},
		{"none.zip", "none", own},
	} {
		if c.variable != "" {
			c.variable = filepath.Join(dir, c.variable)
		}
		t.Setenv("ZONEINFO", c.variable)
		zoneFolders = []string{filepath.Join(dir, c.folder)}
		if got := zoneData("Europe/Paris"); got != "The zone data is "+c.want+"." {
			t.Errorf("ZONEINFO=%s and %s: got %s, want %s", c.variable, c.folder, got, c.want)
		}
	}
}

// A boundary is told as clocks of the zone read it then, also where a day of the month is missing, or was skipped.
func TestTheNextBoundariesAreOfTheZone(t *testing.T) {
	for _, c := range []struct{ limit, now, want string }{
		{"quota 1000/month from day 31 in Europe/Paris", "2026-01-31T12:00:00Z", "The next begin on Sat 2026-02-28 00:00:00 +01:00, Tue 2026-03-31 00:00:00 +02:00 and Thu 2026-04-30 00:00:00 +02:00. "},
		{"quota 5/day at 02:15 in Australia/Lord_Howe", "2026-10-03T00:00:00Z", "The next begin on Sun 2026-10-04 02:30:00 +11:00, Mon 2026-10-05 02:15:00 +11:00 and Tue 2026-10-06 02:15:00 +11:00. "},
		{"quota 5/day in Pacific/Apia", "2011-12-29T00:00:00Z", "The next begin on Thu 2011-12-29 00:00:00 -10:00, Sat 2011-12-31 00:00:00 +14:00 and Sun 2012-01-01 00:00:00 +14:00. "},
		{"quota 5/year from december 31", "2026-11-27T00:00:00Z", "The next begin on Thu 2026-12-31 00:00:00 +00:00, Fri 2027-12-31 00:00:00 +00:00 and Sun 2028-12-31 00:00:00 +00:00."},
		{"100/s", "2026-11-27T00:00:00Z", ""},
	} {
		limit, err := weir.ParseLimit(c.limit)
		if err != nil {
			t.Fatal(err)
		}
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		got := windowsOf(limit, now)
		data := strings.HasSuffix(got, ".") && strings.Contains(got, "The zone data is ")
		if !strings.HasPrefix(got, c.want) || data != strings.Contains(c.limit, " in ") {
			t.Errorf("%s at %s: got %s, want %s and the zone data of a place", c.limit, c.now, got, c.want)
		}
	}
}
