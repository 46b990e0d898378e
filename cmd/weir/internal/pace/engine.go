package pace

import (
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/engineflags"
	"github.com/weirflow/weir/cmd/weir/internal/filter"
)

// open opens the engine of --engine, if there is one, and checks that the filter can use it.
func (o *options) open(f *job) error {
	f.close = func() {}
	if o.shared.Engine != "" {
		var err error
		if f.options.Engine, f.close, err = o.shared.Open(o.lost); err != nil {
			return err
		}
		f.options.Patience = engineflags.Patience
		f.options.Name = o.sharedName(f.options.Limits)
	}
	if _, err := filter.New(f.options); err != nil {
		f.close()
		return limitError(err)
	}
	return nil
}

// sharedName returns the name of the rule. Lines and bytes under the same limits share nothing.
func (o *options) sharedName(limits []weir.Limit) string {
	name := o.shared.Name
	if name == "" {
		var texts []string
		for _, limit := range limits {
			texts = append(texts, limit.String())
		}
		name = strings.Join(texts, " and ")
	}
	if o.bytes != "" {
		return "bytes " + name
	}
	return name
}
