package redislimit

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"
)

// The oldest supported version of Redis.
const oldestMajor, oldestMinor = 6, 2

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
		return &Error{Op: opOpen, Reason: TooOld, Err: err}
	}
	return nil
}

// tooOld returns nil for a supported or unreadable version.
func tooOld(addr, version string) error {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n < 2 {
		return nil
	}
	if major > oldestMajor || major == oldestMajor && minor >= oldestMinor {
		return nil
	}
	return fmt.Errorf("the server at %s is Redis %s; want %d.%d or later", addr, version, oldestMajor, oldestMinor)
}
