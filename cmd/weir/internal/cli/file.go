package cli

import (
	"fmt"
	"io"
	"os"
)

// ReadFile reads a file of at most a number of bytes. It reads no more than that from a larger one, and does not trust
// its size: it may be a pipe that never ends.
func ReadFile(name string, most int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(content)) > most {
		return nil, fmt.Errorf("%s: has more than %s bytes", Printable(name), Thousands(most))
	}
	return content, err
}
