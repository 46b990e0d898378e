package replay

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/front"
)

// mostCustomers bounds the customers of a file.
const mostCustomers = 1 << 20

// customersOf reads the names of customers from a file of lines with a key and a name, and returns the function that finds the name of
// a key. A log or a rule may have the hash of a key in its place: the SHA-256 as hexadecimal digits, or the hash of rules with hashed.
func customersOf(path string) (func(key string) string, error) {
	if path == "" {
		return func(string) string { return "" }, nil
	}
	const form = "each line has a key and a name: sk-live-1234,Example Ltd"
	file, err := os.Open(path)
	if err != nil {
		return nil, cli.Fail(fmt.Errorf("replay: --customers: %w", err), form)
	}
	defer file.Close()
	names := map[string]string{}
	lines := csv.NewReader(file)
	lines.FieldsPerRecord, lines.TrimLeadingSpace, lines.Comment = -1, true, '#'
	for n := 1; ; n++ {
		record, err := lines.Read()
		switch {
		case errors.Is(err, io.EOF):
			return func(key string) string { return names[key] }, nil
		case err != nil:
			return nil, cli.Fail(fmt.Errorf("replay: --customers: %s: %w", cli.Printable(path), err), form)
		case len(record) < 2 || record[0] == "" || record[1] == "":
			return nil, cli.Fail(fmt.Errorf("replay: --customers: %s: record %d has no key or no name", cli.Printable(path), n), form)
		case n > mostCustomers:
			return nil, cli.Fail(fmt.Errorf("replay: --customers: %s has more than %d customers", cli.Printable(path), mostCustomers), "name those that matter")
		case n == 1 && strings.EqualFold(record[0], "key") && strings.EqualFold(record[1], "name"):
			continue
		}
		sum := sha256.Sum256([]byte(record[0]))
		for _, key := range []string{record[0], hex.EncodeToString(sum[:]), front.HashOf(record[0])} {
			names[key] = record[1]
		}
	}
}
