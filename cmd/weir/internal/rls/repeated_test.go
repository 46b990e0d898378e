package rls

import (
	"testing"
)

// A rule that denies a value of a repeated key refuses the call, whichever of the values stands first.
func TestADenyOfARepeatedKeyRefuses(t *testing.T) {
	s, _ := newServer(t, `
rules:
  - {name: guests, match: {descriptor.role: guest, descriptor.path: /admin*}, deny: true}
  - {name: all, match: {descriptor.path: "*"}, limit: 1000/h}
`, nil)
	for _, c := range []struct{ entries, want string }{
		{"path=/admin,role=guest,role=root", "OVER_LIMIT OVER_LIMIT:0"},
		{"path=/admin,role=root,role=guest", "OVER_LIMIT OVER_LIMIT:0"},
		{"path=/,role=root,path=/admin,role=guest", "OVER_LIMIT OVER_LIMIT:0"},
		{"path=/admin,role=root,role=root", "OK OK:999"},
		{"path=/,role=root,role=guest", "OK OK:998"},
		{"path=/,path=/a,path=/b,role=a,role=b,x=1,x=2,y=1,y=2,y=3,z=1,z=2,z=3,z=4,z=5", "OVER_LIMIT OVER_LIMIT:0"}, // too many readings
	} {
		if got := summary(t, s, callOf(entries(c.entries))); got != c.want {
			t.Errorf("%s: got %s, want %s", c.entries, got, c.want)
		}
	}
}
