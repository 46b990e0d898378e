package serve

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// mostAnnounced bounds the rules in the announcement.
const mostAnnounced = 10

// announcement is the text that a daemon prints when it listens: where, the rules that callers can name, and a command
// to try.
type announcement struct {
	address string
	also    []port
	rules   []*weir.Rule
	try     string
}

func newAnnouncement(address net.Addr, ports *portOptions, also []port, rules []*weir.Rule) announcement {
	where, base, curl := "http://"+reachable(address), "http://"+reachable(address), "curl -d "
	if ports.files.Cert != "" && !ports.onlyGRPC {
		where, base = "https://"+reachable(address), "https://"+reachable(address)
	}
	if address.Network() == "unix" {
		where, base, curl = place(address), "http://localhost", "curl --unix-socket "+address.String()+" -d "
	}
	if ports.files.Tokens != "" {
		curl = strings.Replace(curl, "curl", "curl -H 'Authorization: Bearer TOKEN'", 1)
	}
	return announcement{where, also, rules, cli.Printable(curl) + exampleBody(rules) + " " + base + "/v1/take"}
}

// ruleTexts returns the first rules as text, and how many others there are.
func (a *announcement) ruleTexts() (texts []string, more int) {
	for _, r := range a.rules[:min(len(a.rules), mostAnnounced)] {
		text := rules.Own(r).String()
		if r.ChargesAfter() {
			text += ", charged after the work"
		}
		if rules.InPlace(r) != nil {
			text += ", a shadow: it refuses nothing"
		}
		texts = append(texts, text)
	}
	return texts, len(a.rules) - len(texts)
}

// text is the announcement for people.
func (a *announcement) text() string {
	text := "weir listens on " + cli.Printable(a.address) + "\n"
	for _, p := range a.also {
		text += p.name + " on " + cli.Printable(place(p.on.Addr())) + "\n"
	}
	rules, more := a.ruleTexts()
	for _, r := range rules {
		text += "rule " + cli.Printable(r) + "\n"
	}
	if more > 0 {
		text += "and " + plain.Plural(int64(more), "rule") + " more: weir ctl rules lists all\n"
	}
	return text + "try: " + a.try + "\n"
}

// record is the announcement as a line of the log, for programs.
func (a *announcement) record() slog.Record {
	ports := make([]any, 0, len(a.also))
	for _, p := range a.also {
		ports = append(ports, slog.String(p.name, place(p.on.Addr())))
	}
	rules, more := a.ruleTexts()
	record := slog.NewRecord(time.Now(), slog.LevelInfo, "weir listens", 0)
	record.Add("address", a.address, slog.Group("also", ports...), "rules", rules, "more_rules", more, "try", a.try)
	return record
}

// print writes the announcement in the format of the log. It does not wait for a stalled reader.
func (a *announcement) print(out io.Writer, log *slog.Logger, format *logOptions) error {
	written := make(chan error, 1)
	go func() {
		if format.format == logJSON {
			written <- format.handler(out).Handle(context.Background(), a.record())
			return
		}
		_, err := io.WriteString(out, a.text())
		written <- err
	}()
	select {
	case err := <-written:
		return err
	case <-time.After(logPatience):
		log.Warn("serving without the announcement: the reader of standard output stalls", "address", a.address)
		return nil
	}
}

// exampleBody returns a request, quoted for a shell, for the default rule, otherwise the first one. Without rules that
// can be named, those of files match attributes.
func exampleBody(rules []*weir.Rule) string {
	if len(rules) == 0 {
		return `'{"attributes":{"method":"GET","path":"/"}}'`
	}
	request := struct {
		Rule string `json:"rule,omitempty"`
		Key  string `json:"key"`
	}{rules[0].Name(), "alice"}
	if slices.ContainsFunc(rules, func(r *weir.Rule) bool { return r.Name() == "default" }) {
		request.Rule = ""
	}
	body, _ := json.Marshal(request) // two strings always marshal
	return "'" + strings.ReplaceAll(string(body), "'", `'\''`) + "'"
}
