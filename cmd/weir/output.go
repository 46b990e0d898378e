package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// requireOutput returns an error if the output was closed before the start.
func requireOutput(command string, out io.Writer) error {
	if file, ok := out.(*os.File); ok && wasClosed(file) {
		return errorWithHint(fmt.Errorf("%s: standard output is closed, or is /dev/null opened for reading too", command),
			"give it a file or a pipe; to discard the output: >/dev/null")
	}
	return nil
}

// isNull reports whether the stream is /dev/null.
func isNull(stream *os.File) bool {
	info, err := stream.Stat()
	if err != nil {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(info, null)
}

// writeResult writes a value as JSON, or else the table.
func writeResult(command string, out io.Writer, format string, value any, table func() string) (err error) {
	if format == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		err = encoder.Encode(value)
	} else {
		_, err = io.WriteString(out, table())
	}
	return unwritable(command, err)
}

// unwritable explains why a command could not write its output, or returns nil for a nil error.
func unwritable(command string, err error) error {
	if err == nil {
		return nil
	}
	return errorWithHint(fmt.Errorf("%s: standard output: %w", command, err), "is the disk full, or the reader of the pipe gone?")
}
