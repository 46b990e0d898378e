package servers

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir/redislimit/internal/fault"
)

// Connect returns a client of servers that are not too old.
func Connect(option rueidis.ClientOption) (rueidis.Client, error) {
	at := strings.Join(option.InitAddress, ", ")
	made, err := rueidis.NewClient(option)
	if err != nil {
		return nil, unconnected(at, err)
	}
	if err := checkVersion(made, at); err != nil {
		made.Close()
		return nil, fault.Uncounted(fault.TooOld, err)
	}
	return made, nil
}

// unconnected returns the error of a client that could not connect.
func unconnected(at string, err error) error {
	if text, refused := fault.Refusal(err); refused {
		reason := fault.ServerReason(text)
		return fault.Uncounted(reason, fmt.Errorf("%s at %s: %w", reason, at, err))
	}
	return fault.Uncounted(fault.Lost, fmt.Errorf("no Redis answers at %s: %w", at, err))
}

// The oldest version of Redis that an engine accepts, and the oldest that it accepts without a warning.
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
func checkVersion(c rueidis.Client, addr string) error {
	ctx, cancel := context.WithTimeout(context.Background(), versionTimeout)
	defer cancel()
	text, err := c.Do(ctx, c.B().Info().Section("server").Build()).ToString()
	if err != nil {
		return nil
	}
	return TooOld(addr, infoFields(text)["redis_version"])
}

// TooOld returns nil for a supported or unreadable version.
func TooOld(addr, text string) error {
	if v, ok := versionOf(text); ok && v < oldest {
		return fmt.Errorf("the server at %s is Redis %s; want %v or later", addr, text, oldest)
	}
	return nil
}

// OldWarning returns "" for a version without a warning.
func OldWarning(addr, text string) string {
	if v, ok := versionOf(text); ok && v >= oldest && v < oldestKept {
		return fmt.Sprintf("the server at %s is Redis %s, of a release series that gets no more fixes; use %v or later", addr, text, oldestKept)
	}
	return ""
}

// Info requests a section of INFO from a node.
type Info func(ctx context.Context, section string) (map[string]string, error)

// infoFields reads the answer of INFO: lines of name:value.
func infoFields(info string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			fields[name] = value
		}
	}
	return fields
}
