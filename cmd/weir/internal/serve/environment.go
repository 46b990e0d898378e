package serve

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

// variable returns the environment variable that stands for a flag: WEIR_MAX_KEYS for --max-keys.
func variable(flag string) string {
	return "WEIR_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// setFromEnvironment sets the flags that are not on the command line from variables that are not empty. A flag that may be
// repeated takes the lines of its variable.
func setFromEnvironment(cmd *cobra.Command) (err error) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		text := os.Getenv(variable(f.Name))
		if f.Changed || f.Name == "help" || text == "" || err != nil {
			return
		}
		values := []string{text}
		if f.Value.Type() == "stringArray" {
			values = strings.Split(strings.TrimSpace(text), "\n")
		}
		for _, value := range values {
			if failed := cmd.Flags().Set(f.Name, value); failed != nil {
				err = cli.Misuse(fmt.Errorf("%s: %w", variable(f.Name), failed), "the variable stands for the flag --"+f.Name)
				return
			}
		}
	})
	return err
}
