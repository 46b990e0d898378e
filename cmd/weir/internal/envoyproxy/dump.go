package envoyproxy

import (
	"fmt"
	"io"
)

// Dump writes the limits in force, one a line, as /rlconfig of envoyproxy/ratelimit does.
func (c *Config) Dump(w io.Writer) error {
	for _, l := range c.Limits {
		if _, err := fmt.Fprintf(w, "%s: unit=%s requests_per_unit=%d, shadow_mode: %t, quota_mode: %t\n",
			l.path, l.Shown.GetUnit(), l.Shown.GetRequestsPerUnit(), l.Shadow, l.Quota); err != nil {
			return err
		}
	}
	return nil
}
