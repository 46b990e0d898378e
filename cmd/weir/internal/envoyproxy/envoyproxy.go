// Package envoyproxy reads the rules files of envoyproxy/ratelimit, unchanged, and says which limit decides a descriptor.
//
// [Parse] makes a [rules.Config] of files, so that the daemon reads them again like its own. Its Foreign is a [Config]:
// a tree of descriptors for each domain. [Config.Match] walks it, entry by entry. Package rls counts by the result, and
// docs/reference/envoyproxy.md#what-differs lists what differs.
package envoyproxy

import (
	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/imported"
	"github.com/weirflow/weir/layer"
)

// Config is the content of all files. It does not change.
type Config struct {
	Settings
	Unloaded bool            // no control plane has pushed rules yet
	Notes    []imported.Note // on what the files say without effect
	Limits   []*Limit        // in the order of the files
	domains  map[string]*level
	order    []string // of the domains
	stats    *Stats
}

// level is a list of descriptors.
type level struct {
	all   []*descriptor // in the order of the files
	exact map[pair]*descriptor
	any   map[string]*descriptor // without a value
	wild  []*descriptor          // with stars, in the order of the files
}

type pair struct{ key, value string }

// descriptor is a descriptor of a file.
type descriptor struct {
	pair
	parts         []string // of the value, around its stars
	share         bool
	valueToMetric bool
	metadata      *structpb.Struct
	limit         *Limit // nil without one
	below         *level // nil without descriptors
}

// Limit is the rate_limit of a descriptor.
type Limit struct {
	Name      string   // for Replaces
	Replaces  []string // names of limits that do not apply beside this one
	Unlimited bool
	Shadow    bool
	Quota     bool
	Detailed  bool
	Atomic    bool       // taken with other such limits, all or nothing, instead of counted
	Own       bool       // decides by a limit in text form, which Shown does not describe
	Rule      *weir.Rule // nil if Unlimited
	Beyond    *weir.Rule // the same states, with room for one more; nil of an Own limit
	OnFailure layer.Policy
	HasPolicy bool // the file names it
	Shown     *service.RateLimitResponse_RateLimit
	Full      string // the name in engines of a limit that has a shorter one for people, or ""
	path      string // of keys and values in the file
	File      string
	Line      int
}

// ShownName is the name that people see.
func (l *Limit) ShownName() string {
	if l.Rule == nil {
		return l.path // of an unlimited one
	}
	return l.Rule.Name()
}

// Refuses reports whether the limit admits nothing.
func (l *Limit) Refuses() bool { return !l.Own && l.Shown.RequestsPerUnit == 0 }

// Spares reports whether the limit admits what the engine failed to record. The engine's guard cannot say so itself, because
// the hits may be counted.
func (l *Limit) Spares(err error) bool { return l.OnFailure == layer.Allow && weir.Unavailable(err) }

// Match is the limit found for a descriptor of a call.
type Match struct {
	Limit    *Limit // nil without one
	Key      string // of the engine
	Stat     string // the name of its statistics, behind the prefix
	Metadata *structpb.Struct
}
