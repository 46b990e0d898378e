package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/api"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/httplimit"
)

// gatewayOptions are the flags of /v1/check.
type gatewayOptions struct {
	rule, key, cost string
	trust           []string
	status          int
}

func (o *gatewayOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.key, "check-key", "", "take the key of /v1/check from the header field `NAME` instead of the query; X-Forwarded-For stands for the address of the client")
	flags.StringVar(&o.rule, "check-rule", "", "take the rule of /v1/check from the header field `NAME`")
	flags.StringVar(&o.cost, "check-cost", "", "take the cost of /v1/check from the header field `NAME`")
	flags.StringArrayVar(&o.trust, "check-trust", nil, "believe these header fields of the gateways at `ADDR`, an address or a network like 10.0.0.0/8; may be repeated")
	flags.IntVar(&o.status, "check-status", http.StatusTooManyRequests, "answer refused checks with `CODE`: 429, or 403 for nginx")
	cli.Offer(cmd, "check-key", "X-Forwarded-For", "Forwarded")
	cli.Offer(cmd, "check-status", "429", "403")
}

// options checks the flags and returns what the API makes of them. Rules in files need no field for a key.
func (o *gatewayOptions) options(log *slog.Logger, files bool) (api.CheckOptions, error) {
	none := api.CheckOptions{}
	if o.status != http.StatusTooManyRequests && o.status != http.StatusForbidden {
		return none, cli.Misuse(fmt.Errorf("--check-status %d: not a status of refused checks", o.status), "use 429, or 403 for the auth_request of nginx")
	}
	check := api.CheckOptions{Status: o.status}
	named := false
	for _, field := range []struct {
		flag, name string
		to         *string
	}{{"check-rule", o.rule, &check.Rule}, {"check-key", o.key, &check.Key}, {"check-cost", o.cost, &check.Cost}} {
		if strings.ContainsFunc(field.name, notInFieldName) {
			return none, cli.Misuse(fmt.Errorf("--%s %q: not the name of a header field", field.flag, field.name), "a name is like X-Forwarded-For")
		}
		*field.to = http.CanonicalHeaderKey(field.name)
		named = named || field.name != ""
	}
	switch {
	case named && len(o.trust) == 0:
		return none, cli.Misuse(errors.New("--check-key, --check-rule or --check-cost without --check-trust: a client could set the field itself"), "name the address that the gateway connects from: --check-trust 127.0.0.1")
	case !named && len(o.trust) > 0 && !files:
		return none, cli.Misuse(errors.New("--check-trust without a header field to believe"), "name one, like --check-key X-Forwarded-For, or read rules in the form of weir itself from files with --config")
	case len(o.trust) == 0:
		return check, nil
	}
	gateways, err := httplimit.NewClient(httplimit.ClientOptions{Trusted: o.trust, Header: check.Key, Logger: log})
	if bad, ok := errors.AsType[*weir.OptionError](err); ok {
		return none, cli.Misuse(fmt.Errorf("--check-trust: %s", bad.Reason), "use an address or a network, like 127.0.0.1 or 10.0.0.0/8")
	}
	check.Gateways = gateways
	return check, err
}

// notInFieldName reports whether the name of a header field cannot contain a rune.
func notInFieldName(r rune) bool {
	return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}
