package program

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version and the commit",
		Example: "  weir version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printVersion(cmd.OutOrStdout())
		},
	}
}

// printVersion prints the version and the commit for weir version and weir --version.
func printVersion(out io.Writer) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	_, err := io.WriteString(out, versionText(info))
	return cli.Unwritable("version", err)
}

// versionText names the module's version as the Go tool stamped it, a tag or one made from the commit, and the commit.
// The Go tool knows no commit of a module that it downloaded, and none with -buildvcs=false.
func versionText(info *debug.BuildInfo) string {
	version := strings.Trim(cmp.Or(info.Main.Version, "devel"), "()")
	stamped := map[string]string{}
	for _, s := range info.Settings {
		stamped[s.Key] = s.Value
	}
	commit := cmp.Or(stamped["vcs.revision"], "unknown")
	if at := stamped["vcs.time"]; at != "" {
		commit += " of " + at
	}
	if stamped["vcs.modified"] == "true" {
		commit += ", modified"
	}
	text := fmt.Sprintf("weir %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if commit == "unknown" && version != "devel" {
		return text // the version names the commit
	}
	return text + "commit " + commit + "\n"
}
