package serve

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/notice"
	"github.com/weirflow/weir/cmd/weir/internal/override"
)

// notifyOptions are the flags of events.
type notifyOptions struct {
	to     string // a URL, notifyLog, or empty for none
	secret string // a file
	keys   bool
}

// notifyLog has the events in the log alone.
const notifyLog = "log"

func (o *notifyOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.to, "notify", "", "report to the webhook at `URL`, and to the log, when a key has used 80, 95 and 100 % of a quota or of a window of an hour or more; log reports to the log alone")
	flags.StringVar(&o.secret, "notify-secret", "", "sign the events of --notify with the secret in `FILE`, whsec_ and base64")
	flags.BoolVar(&o.keys, "notify-keys", false, "name keys in the events of --notify, in place of their HMAC")
	cli.Offer(cmd, "notify", "https://example.org/hook", notifyLog)
}

func (o *notifyOptions) check() error {
	hook := o.to != "" && o.to != notifyLog
	switch {
	case hook && o.secret == "":
		return cli.Misusef(notifySecretHint, "--notify without --notify-secret: a receiver could not tell who sends")
	case !hook && o.secret != "":
		return cli.Misusef("add --notify https://…", "--notify-secret without the URL of a webhook")
	case o.to == "" && o.keys:
		return cli.Misusef("add --notify https://…, or --notify log", "--notify-keys without --notify")
	}
	return nil
}

const notifySecretHint = `make a secret: (umask 077; echo "whsec_$(openssl rand -base64 32)" > notify.secret), and name it: --notify-secret notify.secret`

// maxNotifySecret bounds the file.
const maxNotifySecret = 4096

// notices returns the Notices of thresholds, or nil.
func (o *notifyOptions) notices(engine weir.Engine, shared bool, overrides *override.Engine, log *slog.Logger) (*notice.Notices, error) {
	if o.to == "" {
		return nil, nil
	}
	options := notice.Options{Engine: engine, Overridden: overrides.Requests, Log: log, Keys: o.keys, Shared: shared}
	if o.to != notifyLog {
		text, err := cli.ReadFile(o.secret, maxNotifySecret)
		if err != nil {
			return nil, cli.Fail(fmt.Errorf("serve: --notify-secret: %w", err), notifySecretHint)
		}
		if options.Hook, err = notice.NewHook(o.to, string(text)); err != nil {
			return nil, cli.Misuse(fmt.Errorf("serve: --notify: %w", err), notifySecretHint)
		}
	}
	return notice.New(options), nil
}

// beginNotices has notices tell until end.
func beginNotices(n *notice.Notices) (end func()) {
	if n == nil {
		return func() {}
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.Run(ctx)
	}()
	return func() {
		stop()
		<-ended
	}
}

// warnOfNotify logs that no limit in force has thresholds.
func (o *notifyOptions) warn(log *slog.Logger, limits []*weir.Rule) {
	if o.to == "" {
		return
	}
	for _, rule := range limits {
		if notice.Has(rule) {
			return
		}
	}
	log.Warn("--notify has nothing to tell: no rule has a quota, or a window of an hour or more")
}
