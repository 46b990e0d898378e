package xds

import "time"

// Bad is a resource that is not in force as it was pushed.
type Bad struct {
	Name  string `json:"name"`
	Why   string `json:"why"`
	Keeps string `json:"keeps,omitempty"` // the version that is in force in its place
}

// Origin says which pushed rules are in force, and how the stream is that they came over.
type Origin struct {
	Status
	Version   string    `json:"version"`
	Pushed    time.Time `json:"pushed,omitzero"` // zero before the first answer
	Restored  bool      `json:"restored"`        // from a file, and no answer has come since
	Resources int       `json:"resources"`       // in force
	Bad       []Bad     `json:"bad,omitempty"`
}
