package logrules

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// Host is the flag --host: the host, and perhaps the port, of requests whose log names none, as the combined format does.
type Host struct {
	text, name, port string
	unused           bool
}

// AddFlag adds the flag to a command.
func (h *Host) AddFlag(cmd *cobra.Command, with string) {
	cmd.Flags().StringVar(&h.text, "host", "", "with "+with+": take this `NAME`, or NAME:PORT, for the host of requests whose log names none")
}

// Check reads the flag. with is the flag without which it has no effect, and given says whether that is there.
func (h *Host) Check(command, with string, given bool) (err error) {
	const hint = "a host is like shop.example, and with a port shop.example:443"
	if h.text == "" {
		return nil
	}
	if !given {
		return cli.Misusef("rules read the host of a request: add "+with, "%s: --host without %s", command, with)
	}
	if h.port = portOf(h.text); h.port != "" {
		if port, err := strconv.ParseUint(h.port, 10, 16); err != nil || port == 0 {
			return cli.Misusef(hint, "%s: --host: %q is no port", command, h.port)
		}
	}
	if h.name, err = rules.Host(h.text); err != nil {
		return cli.Misusef(hint, "%s: --host: %q %v", command, h.text, err)
	}
	return nil
}

// portOf returns what stands behind a host, if anything.
func portOf(text string) string {
	if _, port, ok := strings.Cut(text, "]:"); ok {
		return port
	}
	if strings.Count(text, ":") == 1 {
		_, port, _ := strings.Cut(text, ":")
		return port
	}
	return ""
}

// Tell says that the flag had no effect on a run.
func (h *Host) Tell(errs io.Writer) {
	if h.unused {
		fmt.Fprintln(errs, "weir: --host has no effect: no rule reads the host, or each line names its own")
	}
}
