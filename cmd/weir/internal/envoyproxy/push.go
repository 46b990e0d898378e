package envoyproxy

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	pb "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/cmd/weir/internal/xds"
)

// ResourceType is the type of the resources that hold rules.
const ResourceType = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"

// Pushes makes rules of the resources that a control plane pushes. A resource that cannot be in force leaves the others
// alone, and keeps its last good version. It is not safe for concurrent use.
type Pushes struct {
	options  rules.Options
	settings Settings
	stats    *Stats
	taken    map[string]bool // names that limits cannot have
	config   *rules.Config
	inForce  map[string]*resource
	version  string    // of the answer that the rules in force are of
	at       time.Time // of that answer
}

// resource is a resource that was decoded.
type resource struct {
	name    string
	version string // of the first answer with it
	bytes   []byte
	sum     [sha256.Size]byte
	content *pb.RateLimitConfig
}

// Pushed is the outcome of an answer.
type Pushed struct {
	Config *rules.Config
	Bad    []xds.Bad
	Gone   []string // resources that are no longer in force
}

// NewPushes returns Pushes without resources. Options.Check says what the engine can hold.
func NewPushes(o rules.Options, s Settings, stats *Stats) *Pushes {
	p := &Pushes{options: o, settings: s, stats: stats, inForce: map[string]*resource{}}
	p.config, _ = p.build(&arrived{})
	p.config.Foreign.(*Config).Unloaded = true
	return p
}

// Config returns the rules in force, which are none before the first answer.
func (p *Pushes) Config() *rules.Config { return p.config }

// Version returns the version of the last answer that brought rules in force, and when it came. It is "" before the first one.
func (p *Pushes) Version() (version string, at time.Time) { return p.version, p.at }

// Resources returns the number of resources in force.
func (p *Pushes) Resources() int { return len(p.inForce) }

// Check has later answers refuse rules that an engine cannot hold.
func (p *Pushes) Check(check func(...*weir.Rule) error) { p.options.Check = check }

// Rename makes the rules in force again, with names that differ from these.
func (p *Pushes) Rename(taken map[string]bool) {
	unloaded := p.config.Foreign.(*Config).Unloaded
	p.taken = taken
	if config, problems := p.build(&arrived{fresh: p.inForce}); problems == nil { // they were in force together
		p.config = config
		config.Foreign.(*Config).Unloaded = unloaded
	}
}

// Push puts the resources of an answer in force, which are all that there are.
func (p *Pushes) Push(version string, at time.Time, list []*anypb.Any) Pushed {
	a := p.decode(version, list)
	for name, old := range p.inForce {
		if a.fresh[name] == nil && (a.nameless || a.bad[name] != nil) {
			a.kept[name] = old // without a name, nobody knows which resource is gone
		}
	}
	config := p.settle(a)
	done := Pushed{Config: config}
	now := maps.Clone(a.kept)
	maps.Copy(now, a.fresh)
	for name := range p.inForce {
		if now[name] == nil {
			done.Gone = append(done.Gone, name)
		}
	}
	slices.Sort(done.Gone)
	for _, name := range slices.Sorted(maps.Keys(a.bad)) {
		if kept := a.kept[name]; kept != nil {
			a.bad[name].Keeps = kept.version
		}
		done.Bad = append(done.Bad, *a.bad[name])
	}
	if len(done.Bad) > 0 {
		p.stats.failed.Add(1)
	} else {
		p.stats.loaded.Add(1)
	}
	p.config, p.inForce, p.version, p.at = config, now, version, at
	return done
}

// arrived are the resources of an answer: those to put in force, and those that stay in place of bad ones.
type arrived struct {
	fresh, kept map[string]*resource
	bad         map[string]*xds.Bad
	nameless    bool // one does not decode far enough to have a name
}

// decode decodes the resources of an answer. Bytes that are in force already are not decoded again.
func (p *Pushes) decode(version string, list []*anypb.Any) *arrived {
	a := &arrived{map[string]*resource{}, map[string]*resource{}, map[string]*xds.Bad{}, false}
	known := make(map[[sha256.Size]byte]*resource, len(p.inForce))
	for _, r := range p.inForce {
		known[r.sum] = r
	}
	for i, one := range list {
		r, err := &resource{version: version, bytes: one.GetValue(), sum: sha256.Sum256(one.GetValue())}, error(nil)
		if old := known[r.sum]; old != nil && one.GetTypeUrl() == ResourceType {
			r = old
		} else {
			err = r.decode(one)
		}
		name := cmp.Or(r.content.GetName(), r.content.GetDomain())
		if name == "" {
			name, a.nameless = fmt.Sprintf("resource %d", i+1), a.nameless || err != nil
		}
		for n, base := 2, name; a.fresh[name] != nil || a.bad[name] != nil; n++ {
			name = fmt.Sprintf("%s#%d", base, n)
		}
		if err != nil {
			a.bad[name] = &xds.Bad{Name: name, Why: fmt.Sprintf("%s: %v", name, err)}
			continue
		}
		if r.name != name {
			again := *r
			r, again.name = &again, name
		}
		a.fresh[name] = r
	}
	return a
}

// decode reads the bytes of a resource. After an error the content is the readable part.
func (r *resource) decode(one *anypb.Any) error {
	r.content = &pb.RateLimitConfig{}
	if one.GetTypeUrl() != ResourceType {
		return fmt.Errorf("the type is %q, want %q", one.GetTypeUrl(), ResourceType)
	}
	if err := (proto.UnmarshalOptions{RecursionLimit: 4 * maxNesting}).Unmarshal(r.bytes, r.content); err != nil {
		return fmt.Errorf("does not decode: %w", err)
	}
	return nil
}

// maxSettle bounds the attempts to keep old versions that disturb one another.
const maxSettle = 16

// settle takes bad resources away from an answer until the rest can be in force together, and returns its rules.
func (p *Pushes) settle(a *arrived) *rules.Config {
	for pass := 1; ; pass++ {
		config, problems := p.build(a)
		if problems == nil {
			return config
		}
		for _, problem := range problems {
			name := problem.File
			old := p.inForce[name]
			switch r := a.fresh[name]; {
			case r == nil: // a kept version: another resource has taken its place
				delete(a.kept, name)
			case a.bad[name] != nil: // a further problem
			default:
				a.bad[name] = &xds.Bad{Name: name, Why: problem.Sentence()}
				if old != nil && old.sum != r.sum && pass < maxSettle {
					a.kept[name] = old
				}
			}
		}
		for name := range a.bad {
			delete(a.fresh, name)
		}
	}
}

// build makes rules of resources in the order of their names, of kept ones last, so that these give way.
func (p *Pushes) build(a *arrived) (*rules.Config, rules.Problems) {
	var all []*resource
	for _, of := range []map[string]*resource{a.fresh, a.kept} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			all = append(all, of[name])
		}
	}
	r := newReader(p.options, p.settings, p.stats)
	r.short = shortNames(all, p.taken)
	for _, one := range all {
		r.resource(one.name, one.content)
	}
	return r.done()
}

// saved is the form of resources in a file. The bytes are those of the control plane, so that nothing of them is lost.
type saved struct {
	Version   string          `json:"version"`
	Pushed    time.Time       `json:"pushed"`
	Resources []savedResource `json:"resources"`
}

type savedResource struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Bytes   []byte `json:"bytes"`
}

// Save returns the resources in force, for Restore.
func (p *Pushes) Save() ([]byte, error) {
	s := saved{Version: p.version, Pushed: p.at}
	for _, name := range slices.Sorted(maps.Keys(p.inForce)) {
		r := p.inForce[name]
		s.Resources = append(s.Resources, savedResource{name, r.version, r.bytes})
	}
	return json.MarshalIndent(s, "", " ")
}

// Restore puts resources in force that Save has returned. It reports those that cannot be.
func (p *Pushes) Restore(content []byte) (Pushed, error) {
	var s saved
	if err := json.Unmarshal(content, &s); err != nil {
		return Pushed{}, fmt.Errorf("envoyproxy: restore: %w", err)
	}
	if s.Pushed.IsZero() {
		return Pushed{}, errors.New("envoyproxy: restore: the file does not say when its rules were pushed")
	}
	list := make([]*anypb.Any, 0, len(s.Resources))
	for _, r := range s.Resources {
		list = append(list, &anypb.Any{TypeUrl: ResourceType, Value: r.Bytes})
	}
	done := p.Push(s.Version, s.Pushed, list)
	for _, r := range s.Resources {
		if now := p.inForce[r.Name]; now != nil {
			now.version = r.Version
		}
	}
	return done, nil
}
