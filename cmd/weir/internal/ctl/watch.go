package ctl

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/live"
)

// maxEvent bounds the text of an event, in bytes.
const maxEvent = 16 << 20

// watch prints the events of the live stream until it is interrupted: as lines of JSON, or as a screen of text for each.
func (c *control) watch(cmd *cobra.Command, s *screen) error {
	if c.form != "text" && c.form != "json" {
		return cli.Misusef("formats: text, json", "--format: %q is not a format", c.form)
	}
	switch {
	case !slices.Contains([]string{"taken", "refused", "used"}, s.by):
		return cli.Misusef("list keys by the calls that are taken or refused, or by the used part of the limit", "--by %s: want taken, refused or used", cli.Printable(s.by))
	case s.lines < 1:
		return cli.Misusef("the default is 10", "--number %d: want a number above 0", s.lines)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	response, err := c.client.send(ctx, http.MethodGet, "/v1/admin/live", nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return read(response, nil, nil)
	}
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind != "text/event-stream" {
		return stranger(response, "without a stream of events")
	}
	if file, ok := cmd.OutOrStdout().(*os.File); ok {
		s.clears = cli.IsTerminal(file)
	}
	err = s.follow(response.Body, cmd.OutOrStdout(), c.form == "json")
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// follow prints each event.
func (s *screen) follow(from io.Reader, to io.Writer, asJSON bool) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		out := text + "\n"
		if !asJSON {
			var m live.Message
			if err := json.Unmarshal([]byte(text), &m); err != nil {
				return cli.Fail(fmt.Errorf("ctl: an event of the daemon: %w", err), "is the daemon of another version?")
			}
			out = s.show(&m)
		}
		if _, err := io.WriteString(to, out); err != nil {
			return cli.Unwritable("ctl", err)
		}
	}
	return cli.Fail(errors.New("ctl: the daemon has ended the stream"), "it may be stopping, have too many viewers, or no longer know the token; ask again")
}
