package main

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
)

// announce prints where the program listens, its rules, and how to try it. It
// leaves a reader that stalls behind.
func announce(out io.Writer, log *slog.Logger, address net.Addr, rules []*weir.Rule) error {
	base := "http://" + reachable(address)
	text := "weir listens on " + base + "\n"
	for _, r := range rules {
		text += "rule " + printable(r.String()) + "\n"
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
		log.Warn("serving, though standard output takes no more: its reader stalls", "address", base)
		return nil
	}
}

// exampleBody is a request for a shell: of the default rule, or of the first.
func exampleBody(rules []*weir.Rule) string {
	request := struct {
		Rule string `json:"rule,omitempty"`
		Key  string `json:"key"`
	}{rules[0].Name(), "alice"}
	if slices.ContainsFunc(rules, func(r *weir.Rule) bool { return r.Name() == "default" }) {
		request.Rule = ""
	}
	body, _ := json.Marshal(request) // two texts always can
	return "'" + strings.ReplaceAll(string(body), "'", `'\''`) + "'"
}

// reachable is the address as a client on this machine writes it.
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
