package redislimit

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
)

// The oldest version of Redis that Open accepts, and the oldest that it accepts without a warning.
const oldest, oldestKept version = 6_0000, 6_0002

// version is that of a release: its major number times 10,000, and its minor number.
type version int

func (v version) String() string { return fmt.Sprintf("%d.%d", int(v)/1_0000, int(v)%1_0000) }

// versionOf returns false for an unreadable version.
func versionOf(text string) (v version, ok bool) {
	var major, minor int
	n, _ := fmt.Sscanf(text, "%d.%d", &major, &minor)
	return version(1_0000*major + minor), n == 2
}

// versionTimeout bounds the request for the version.
const versionTimeout = time.Second

// checkVersion refuses a server that is too old. It accepts a server that does not report its version.
func checkVersion(client rueidis.Client, addr string) error {
	ctx, cancel := context.WithTimeout(context.Background(), versionTimeout)
	defer cancel()
	text, err := client.Do(ctx, client.B().Info().Section("server").Build()).ToString()
	if err != nil {
		return nil
	}
	if err := tooOld(addr, infoFields(text)["redis_version"]); err != nil {
		return &Error{Op: opOpen, Reason: TooOld, Counted: weir.CountedNo, Err: err}
	}
	return nil
}

// tooOld returns nil for a supported or unreadable version.
func tooOld(addr, text string) error {
	if v, ok := versionOf(text); ok && v < oldest {
		return fmt.Errorf("the server at %s is Redis %s; want %v or later", addr, text, oldest)
	}
	return nil
}

// oldWarning returns "" for a version without a warning.
func oldWarning(addr, text string) string {
	if v, ok := versionOf(text); ok && v >= oldest && v < oldestKept {
		return fmt.Sprintf("the server at %s is Redis %s, of a release series that gets no more fixes; use %v or later", addr, text, oldestKept)
	}
	return ""
}
