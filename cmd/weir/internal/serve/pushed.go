package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/envoyproxy"
	"github.com/weirflow/weir/cmd/weir/internal/rulefiles"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/cmd/weir/internal/xds"
)

// pushed are rules that a control plane pushes, in place of files.
type pushed struct {
	plane  *envoyproxy.ControlPlane
	set    *rulefiles.Set
	names  envoyproxy.Names
	client *xds.Client
	over   *rulefiles.Set // the rules of --overlay; nil without
	file   *stateFile     // beside which the rules are kept; nil for nowhere
	log    *slog.Logger

	mu       sync.Mutex
	pushes   *envoyproxy.Pushes
	bad      []xds.Bad
	known    map[string]bool // notes that are logged
	loaded   bool            // an answer, or a file, has brought rules
	restored bool            // only a file has
}

// pushedEnd is the end of the name of the file with the rules, which begins with that of the states.
const pushedEnd = ".xds"

// mostPushed bounds that file.
const mostPushed = 256 << 20

// newPushed returns the rules of a control plane, which are none yet.
func newPushed(o *compatOptions, parsing rulefiles.Options) *pushed {
	p := &pushed{plane: o.plane, pushes: envoyproxy.NewPushes(parsing.Options, o.settings, &o.stats), known: map[string]bool{}}
	p.set = rulefiles.Of(p.pushes.Config())
	return p
}

// load reads the rules, or begins without those of a control plane.
func (o *options) load(parsing rulefiles.Options) (*inUse, error) {
	if o.compat.plane == nil {
		return o.rules.load(parsing)
	}
	p := newPushed(&o.compat, parsing)
	if err := p.openOverlay(o.compat.overlay, parsing); err != nil {
		return nil, err
	}
	return &inUse{set: p.set, pushed: p, named: p.set.Config().Named()}, nil
}

// pushedFile returns the file of --state that the rules are kept beside, or nil. A shared engine has the states, so
// only the rules are there.
func (o *options) pushedFile() *stateFile {
	switch {
	case o.compat.plane == nil || o.state.path == "":
		return nil
	case !o.engine.shared():
		return &o.state
	}
	only := &stateFile{path: o.state.path, log: o.state.log}
	o.state.path = ""
	return only
}

// open makes the client, which does not run yet, and restores the rules of a file.
func (p *pushed) open(file *stateFile, log *slog.Logger) {
	if p.file, p.log = file, log; file != nil {
		p.restore()
	}
	p.newClient()
}

// open begins with the rules of the last run, if a control plane has pushed them.
func (u *inUse) open(kept *stateFile, log *slog.Logger) {
	if u.pushed != nil {
		u.pushed.open(kept, log)
		u.named = u.set.Config().Named()
	}
}

// around puts the names of pushed rules around an engine.
func (u *inUse) around(e weir.Engine) weir.Engine {
	if u.pushed == nil {
		return e
	}
	return u.pushed.names.Around(e)
}

// restore puts the rules of the last run in force.
func (p *pushed) restore() {
	content, err := cli.ReadFile(p.file.path+pushedEnd, mostPushed)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	done := envoyproxy.Pushed{}
	if err == nil {
		done, err = p.pushes.Restore(content)
	}
	if err != nil {
		p.log.Error("the rules that were pushed to the last run are not restored", "file", p.file.path+pushedEnd, "err", err)
		return
	}
	version, at := p.pushes.Version()
	p.loaded, p.restored, p.bad = true, true, done.Bad
	p.set.Put(p.compose(), problemsOfPush(done.Bad))
	p.logBad(done.Bad)
	p.log.Info("rules restored that a control plane pushed before", "file", p.file.path+pushedEnd, "version", version, "pushed", at.UTC().Format(time.RFC3339), "resources", p.pushes.Resources(), "rules", len(done.Config.Rules))
}

// waiting says what the daemon waits for before it is ready, or "".
func (p *pushed) waiting() string {
	if p == nil || p.plane.Force || p.isLoaded() {
		return ""
	}
	return "the control plane has pushed no rules yet"
}

// unhealthy says why health checks fail, or "".
func (p *pushed) unhealthy() string {
	if p == nil || !p.plane.HealthyOnceLoaded || p.isLoaded() {
		return ""
	}
	return "the control plane has pushed no rules yet"
}

func (p *pushed) isLoaded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.loaded
}

// origin says which rules are in force, or returns nil for rules that nobody pushes.
func (p *pushed) origin() *xds.Origin {
	if p == nil {
		return nil
	}
	o := &xds.Origin{Status: p.client.Status()}
	p.mu.Lock()
	defer p.mu.Unlock()
	o.Version, o.Pushed = p.pushes.Version()
	o.Restored, o.Resources, o.Bad = p.restored, p.pushes.Resources(), p.bad
	return o
}

// keepUp receives rules until the context ends, and passes them on.
func (p *pushed) keepUp(ctx context.Context, check func(...*weir.Rule) error, again <-chan os.Signal, tell *news) {
	p.mu.Lock()
	p.pushes.Check(check)
	p.mu.Unlock()
	if p.over != nil {
		p.over.Check(check)
		go p.keepOverlay(ctx, again, tell)
	}
	p.client.Push = func(version string, list []*anypb.Any) string { return p.push(version, list, tell) }
	p.client.Run(ctx)
}

// newClient makes the client, which does not run yet.
func (p *pushed) newClient() {
	c := p.plane
	fields := map[string]*structpb.Value{}
	for name, value := range c.Metadata {
		fields[name] = structpb.NewStringValue(value)
	}
	var secure func() (*tls.Config, error)
	if c.Secure {
		secure = c.TLS
	}
	p.client = xds.New(xds.Options{
		Server: c.Server, Node: &core.Node{Id: c.NodeID, Metadata: &structpb.Struct{Fields: fields}}, Headers: c.Headers, TLS: secure, MaxMessage: c.MaxMessage,
		Retry: c.Retry, Backoff: xds.Backoff{Initial: c.BackoffInitial, Max: c.BackoffMax, Factor: c.BackoffFactor, Jitter: c.BackoffJitter},
		Type: envoyproxy.ResourceType, Log: p.log,
	})
}

// push puts the rules of an answer in force. It returns what is wrong with them, for the control plane.
func (p *pushed) push(version string, list []*anypb.Any, tell *news) (wrong string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	had := p.pushes.Resources()
	done := p.pushes.Push(version, time.Now(), list)
	p.loaded, p.restored, p.bad = true, false, done.Bad
	tell.use(p.set.Put(p.compose(), problemsOfPush(done.Bad)))
	p.logNotes(done.Config)
	p.logBad(done.Bad)
	line := p.log.Info
	if len(list) == 0 && had > 0 {
		line = p.log.Warn // somebody may have removed everything by mistake
	}
	line("rules pushed", "version", version, "resources", p.pushes.Resources(), "refused", len(done.Bad), "gone", len(done.Gone), "rules", len(done.Config.Rules))
	p.keep()
	for i, b := range done.Bad {
		if i == mostBad {
			return wrong + fmt.Sprintf("; and %d more", len(done.Bad)-mostBad)
		}
		if i > 0 {
			wrong += "; "
		}
		wrong += b.Why
	}
	return wrong
}

// keep writes the rules to the file. The caller holds the lock.
func (p *pushed) keep() {
	if p.file == nil {
		return
	}
	content, err := p.pushes.Save()
	if err == nil {
		err = p.file.replace(p.file.path+pushedEnd, func(w io.Writer) error {
			_, err := w.Write(content)
			return err
		})
	}
	if err != nil {
		p.log.Error("the pushed rules were not saved; a start without the control plane would lack them", "err", err)
	}
}

// mostBad bounds the lines, and the text for the control plane, about the resources of an answer.
const mostBad = 20

// logBad logs which resources are not in force as they were pushed.
func (p *pushed) logBad(bad []xds.Bad) {
	for _, b := range bad[:min(len(bad), mostBad)] {
		stays := "nothing of it is in force"
		if b.Keeps != "" {
			stays = "its version " + b.Keeps + " stays in force"
		}
		p.log.Error("a resource of the control plane is refused, and the others are in force", "resource", b.Name, "why", b.Why, "stays", stays)
	}
	if more := len(bad) - mostBad; more > 0 {
		p.log.Error("more resources of the control plane are refused", "resources", more)
	}
}

// logNotes logs what pushed rules say without effect, once.
func (p *pushed) logNotes(config *rules.Config) {
	now := map[string]bool{}
	warn := func(message, of, what string) {
		text := of + ": " + what
		if now[text] = true; !p.known[text] && len(now) <= mostBad {
			p.log.Warn(message, "of", of, "what", what)
		}
	}
	for _, n := range config.Foreign.(*envoyproxy.Config).Notes {
		warn("a pushed rule says something without effect", n.File, n.Text)
	}
	for _, r := range p.missed() {
		warn("a rule of the overlay replaces nothing now", "rule "+r.Name, "no pushed limit is named "+r.Replaces+", as weir ctl rules shows names")
	}
	p.known = now
}

// problemsOfPush returns an error of bad resources, or nil.
func problemsOfPush(bad []xds.Bad) error {
	var all rules.Problems
	for _, b := range bad {
		all = append(all, rules.Problem{File: b.Name, Text: b.Why})
	}
	if all == nil {
		return nil
	}
	return all
}
