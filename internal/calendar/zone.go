package calendar

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// zones holds the zones that were loaded, by name. Their number is that of the names in the zone data.
var zones sync.Map

// Zone returns a zone by its IANA name; "" is UTC. It refuses names that mean the zone of this machine, or that not all
// zone data has.
func Zone(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location), nil
	}
	if !portable(name) {
		return nil, fmt.Errorf("%q is not the IANA name of a place, such as Europe/Paris", name)
	}
	loaded, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf(`%q is not a zone that this program knows; a program without zone data needs import _ "time/tzdata"`, name)
	}
	known, _ := zones.LoadOrStore(name, loaded)
	return known.(*time.Location), nil
}

// portable reports whether a name means the same zone on every machine.
func portable(name string) bool {
	switch folder, _, _ := strings.Cut(name, "/"); folder {
	case "Local", "localtime", "posixrules", "Factory", "posix", "right":
		return false
	}
	other := func(r rune) bool { return !isLetter(r) && !strings.ContainsRune("0123456789_+-/", r) }
	return isLetter(rune(name[0])) && !strings.ContainsFunc(name, other)
}

func isLetter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }
