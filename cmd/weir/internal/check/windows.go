package check

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	explanations "github.com/weirflow/weir/cmd/weir/internal/explain"
)

// windowsOf tells the next boundaries of a quota in its zone, and which zone data says so. It is empty for other limits.
func windowsOf(limit weir.Limit, now time.Time) string {
	text, zone := explanations.Windows(limit, now)
	if zone != "" {
		text += " " + zoneData(zone)
	}
	return text
}

// zoneFolders are where time.LoadLocation looks for zone data first, except for ZONEINFO.
var zoneFolders = []string{"/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo"}

// zoneData says which data of a zone this program uses: the first that can be read.
func zoneData(zone string) string {
	for _, folder := range append([]string{os.Getenv("ZONEINFO")}, zoneFolders...) {
		if !hasZone(folder, zone) {
			continue
		}
		text, _ := cli.ReadFile(filepath.Join(folder, "tzdata.zi"), maxZone)
		first, _, _ := strings.Cut(string(text), "\n")
		if version, found := strings.CutPrefix(first, "# version "); found {
			return fmt.Sprintf("The zone data is %s, of version %s.", folder, version)
		}
		return fmt.Sprintf("The zone data is %s.", folder)
	}
	return explanations.OwnZoneData()
}

// maxZone bounds the files of zone data, in bytes.
const maxZone = 1 << 20

// hasZone reports whether a folder or zip file has readable data of a zone.
func hasZone(folder, zone string) bool {
	var data []byte
	var err error
	switch {
	case folder == "":
		return false
	case strings.HasSuffix(folder, ".zip"):
		data, err = unzipped(folder, zone)
	default:
		data, err = cli.ReadFile(filepath.Join(folder, zone), maxZone)
	}
	if err == nil {
		_, err = time.LoadLocationFromTZData(zone, data)
	}
	return err == nil
}

// unzipped reads a file in a zip file. Go reads zone data that is not compressed.
func unzipped(path, zone string) ([]byte, error) {
	r, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	for _, f := range r.File {
		if f.Name != zone {
			continue
		}
		if f.Method != zip.Store {
			return nil, errors.ErrUnsupported
		}
		content, err := f.Open()
		if err != nil {
			return nil, err
		}
		defer func() { _ = content.Close() }()
		return io.ReadAll(io.LimitReader(content, maxZone))
	}
	return nil, fs.ErrNotExist
}
