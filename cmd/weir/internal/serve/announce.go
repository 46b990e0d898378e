package serve

import (
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

// announce prints the listening address, the rules, and a command to try. It does not wait for a stalled reader.
func announce(out io.Writer, log *slog.Logger, address net.Addr, rules []*weir.Rule) error {
	base := "http://" + reachable(address)
	text := "weir listens on " + base + "\n"
	for _, r := range rules {
		text += "rule " + cli.Printable(r.String()) + "\n"
	}
	text += "try: curl -d " + exampleBody(rules) + " " + base + "/v1/take\n"
	written := make(chan error, 1)
	go func() {
		_, err := io.WriteString(out, text)
		written <- err
	}()
	select {
	case err := <-written:
		return err
	case <-time.After(logPatience):
		log.Warn("serving without the announcement: the reader of standard output stalls", "address", base)
		return nil
	}
}

// exampleBody returns a request, quoted for a shell, for the default rule or else the first rule.
func exampleBody(rules []*weir.Rule) string {
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

// reachable returns the address in a form that a client on this machine can use.
func reachable(address net.Addr) string {
	tcp, ok := address.(*net.TCPAddr)
	switch {
	case !ok || len(tcp.IP) != 0 && !tcp.IP.IsUnspecified():
		return address.String()
	case tcp.IP.To4() != nil:
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
	}
	return net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))
}
