package replay

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/logrules"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/internal/accesslog"
)

// readOptions are the flags of how logs are read.
type readOptions struct {
	format       string
	trust        []string
	since, until string
	where        []string
	lacking      []string // attributes of --where that no line has had, of those that it was asked for
}

func (o *readOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.format, "log-format", "", "read logs in this `FORMAT`, a name, a pattern of $variables as in nginx's log_format, or the names of fields, like 'json time=when client=caller.ip'; by default each log shows its own")
	flags.StringArrayVar(&o.trust, "trust", nil, "believe the list of addresses that the proxies at `ADDR` have forwarded, an address or a network like 10.0.0.0/8; may be repeated")
	flags.StringVar(&o.since, "since", "", "leave out lines before this `TIME`, an instant or a duration back from the end of the logs")
	flags.StringVar(&o.until, "until", "", "leave out lines at this `TIME` or after it")
	flags.StringArrayVar(&o.where, "where", nil, "count only requests that match `ATTRIBUTE=PATTERN`, as in rules; patterns of one attribute are joined by or, attributes by and")
	cli.Offer(cmd, "log-format", accesslog.Formats()...)
	cli.Offer(cmd, "since", "1h", "1d")
}

// reader returns the reader of the logs, which end at the latest when done is closed.
func (o *readOptions) reader(done <-chan struct{}) (*accesslog.Reader, error) {
	options := accesslog.Options{Format: o.format, Done: done}
	var err error
	if options.Client, err = o.client(); err != nil {
		return nil, err
	}
	for _, b := range []struct {
		flag, text string
		to         *accesslog.Bound
	}{{"since", o.since, &options.Since}, {"until", o.until, &options.Until}} {
		if b.text == "" {
			continue
		}
		if *b.to, err = accesslog.ParseBound(b.text); err != nil {
			return nil, cli.Misusef("an instant is like 2026-11-27T08:00:00Z, or '2026-11-27 08:00' in UTC; a duration back from the end of the logs like 90m, 7d or 2d12h, days first", "--%s: %q %s", b.flag, b.text, err)
		}
	}
	if options.Since.NotBefore(options.Until) {
		return nil, cli.Misusef("a duration counts back from the end of the logs: --since 5h --until 1h is four hours", "--since: %q is not before --until %q", o.since, o.until)
	}
	reader, err := accesslog.NewReader(options)
	if err != nil {
		return nil, logrules.NoFormat(err)
	}
	return reader, o.keep(reader)
}

// client returns the function that chooses the client of a line as the daemon does, or nil if no proxy is trusted.
func (o *readOptions) client() (func(peer, forwarded string) (netip.Addr, bool), error) {
	if len(o.trust) == 0 {
		return nil, nil
	}
	client, err := httplimit.NewClient(httplimit.ClientOptions{Trusted: o.trust})
	if err != nil {
		var bad *weir.OptionError
		text := strings.TrimSpace(err.Error())
		if e, ok := err.(interface{ Unwrap() []error }); ok {
			if first, ok := e.Unwrap()[0].(*weir.OptionError); ok {
				bad = first
			}
		}
		if bad != nil {
			text = bad.Reason
		}
		return nil, cli.Misuse(fmt.Errorf("--trust: %s", text), "use an address or a network, like 127.0.0.1 or 10.0.0.0/8")
	}
	return func(peer, forwarded string) (netip.Addr, bool) {
		r := http.Request{RemoteAddr: peer, Header: http.Header{}}
		if forwarded != "" {
			r.Header["X-Forwarded-For"] = []string{forwarded}
		}
		return client.Addr(&r)
	}, nil
}

// logsOf returns the files, with the matches of those that are patterns and no files.
func logsOf(names []string) (files []string, err error) {
	for _, name := range names {
		if _, err := os.Stat(name); err == nil || name == "-" || !strings.ContainsAny(name, "*?[") {
			files = append(files, name)
			continue
		}
		found, err := filepath.Glob(name)
		if err != nil || len(found) == 0 {
			return nil, cli.Fail(fmt.Errorf("replay: %s: %w", cli.Printable(name), cmp.Or(err, os.ErrNotExist)), "no file has a name like this; check the folder")
		}
		files = append(files, found...)
	}
	return files, nil
}
