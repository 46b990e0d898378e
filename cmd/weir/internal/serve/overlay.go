package serve

import (
	"context"
	"os"

	"github.com/weirflow/weir/cmd/weir/internal/envoyproxy"
	"github.com/weirflow/weir/cmd/weir/internal/rulefiles"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// openOverlay reads the rules that lie over pushed ones.
func (p *pushed) openOverlay(paths []string, parsing rulefiles.Options) error {
	if len(paths) == 0 {
		return nil
	}
	set, err := rulefiles.Open(rulefiles.Options{Options: parsing.Options, Parse: parseOverlay}, paths...)
	if err != nil {
		return rulefiles.Refused("serve: --overlay", err)
	}
	p.over = set
	p.pushes.Rename(p.taken())
	p.set = rulefiles.Of(p.compose())
	return nil
}

// parseOverlay reads a rules file that has rules alone.
func parseOverlay(o rules.Options, files ...rules.File) (*rules.Config, error) {
	config, err := rules.Parse(o, files...)
	if err != nil {
		return nil, err
	}
	if problems := config.OnlyRules(); problems != nil {
		return nil, problems
	}
	return config, nil
}

// taken are the names of the rules of the overlay.
func (p *pushed) taken() map[string]bool {
	names := map[string]bool{}
	for _, r := range p.over.Config().Rules {
		names[r.Name] = true
	}
	return names
}

// compose returns the rules in force: those that are pushed, below those of the overlay.
func (p *pushed) compose() *rules.Config {
	config := p.pushes.Config()
	p.names.Use(config.Foreign.(*envoyproxy.Config))
	if p.over == nil {
		return config
	}
	return p.over.Config().Beside(config.Rules, config.Foreign)
}

// missed returns the rules of the overlay that replace no pushed limit.
func (p *pushed) missed() (missed []*rules.Rule) {
	if p.over == nil {
		return nil
	}
	names := map[string]bool{}
	for _, l := range p.pushes.Config().Foreign.(*envoyproxy.Config).Limits {
		names[l.ShownName()] = true
	}
	for _, r := range p.over.Config().Rules {
		if r.Replaces != "" && !names[r.Replaces] {
			missed = append(missed, r)
		}
	}
	return missed
}

// keepOverlay uses changed files of the overlay until the context ends.
func (p *pushed) keepOverlay(ctx context.Context, again <-chan os.Signal, tell *news) {
	p.over.Watch(ctx, again, func(r rulefiles.Reload) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case r.Now == nil:
			tell.log.Error("changes of the overlay may go unnoticed", "err", r.Err)
			return
		case r.Err != nil:
			tell.use(p.set.Put(p.set.Config(), r.Err))
			tell.log.Error("the rules in force stay: the overlay has problems", "err", r.Err)
			return
		}
		p.pushes.Rename(p.taken())
		tell.use(p.set.Put(p.compose(), problemsOfPush(p.bad)))
		p.logNotes(p.pushes.Config())
		tell.log.Info("overlay reloaded", "rules", len(r.Now.Rules))
	})
}

// readsFiles reports whether rules are in files, which a signal has read again.
func (u *inUse) readsFiles() bool {
	return u.set != nil && (u.pushed == nil || u.pushed.over != nil)
}
