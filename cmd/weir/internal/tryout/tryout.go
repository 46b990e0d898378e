// Package tryout is weir playground: it serves the page "Try it" on loopback, because a page of a file may start no worker.
package tryout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

// usual is where the page is, unless another program has the port. Links of the page then stay the same.
const usual = "127.0.0.1:8077"

// needed are files without which a folder is not the page.
var needed = []string{"index.html", "worker.js", "weir.wasm.gz"}

// Policy lets the page load its own files and run its own program, and nothing else.
const Policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; style-src 'self'; " +
	"img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func Command() *cobra.Command {
	return &cobra.Command{
		Use:   "playground DIR",
		Short: "Serve the page that plays limits in a browser, on this machine alone",
		Long: `Playground serves the page "Try it" on loopback: limits on made-up traffic, an access
log, and rules, decided in the browser by the code of this program. Neither the page
nor this command sends opened files to another machine.

DIR is the folder playground of a release archive, or one that scripts/playground.sh
has built. The command prints the address, and ends with Ctrl-C.`,
		Example: `  weir playground playground`,
		Args:    cli.Arguments(1, 1, "the folder of the page"),
		RunE:    func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), args[0], cmd.OutOrStdout()) },
	}
}

func run(ctx context.Context, dir string, out io.Writer) error {
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return noPage(err)
	}
	defer func() { _ = root.Close() }()
	for _, name := range needed {
		if _, err := root.Stat(name); err != nil {
			return noPage(err)
		}
	}
	listener, err := net.Listen("tcp", usual)
	if err != nil {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return cli.Fail(fmt.Errorf("playground: %w", err), "no port of 127.0.0.1 is free")
	}
	if _, err := fmt.Fprintf(out, "weir: the playground is at http://%s/ until Ctrl-C\n", listener.Addr()); err != nil {
		return cli.Unwritable("playground", err)
	}
	server := &http.Server{Handler: handler(root), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return cli.Fail(fmt.Errorf("playground: %w", err), "start it again")
	}
	return nil
}

func noPage(err error) error {
	return cli.Fail(fmt.Errorf("playground: %w", err), "name the folder playground of a release archive, or build one in a clone: scripts/playground.sh bin/playground")
}

// handler serves the files of the folder, and follows no link out of it.
func handler(root *os.Root) http.Handler {
	files := http.FileServerFS(root.FS())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.Error(w, "the playground has only files", http.StatusMethodNotAllowed)
			return
		}
		head := w.Header()
		head.Set("Content-Security-Policy", Policy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		head.Set("Cache-Control", "private, max-age=600") // a second worker of the page then asks nothing
		files.ServeHTTP(w, r)
	})
}
