package program

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

// commandLineError explains why no command ran.
func commandLineError(cmd *cobra.Command, err error) error {
	hint := fmt.Sprintf("'%s --help' shows its flags and examples", cmd.CommandPath())
	text, meant, mistyped := strings.Cut(err.Error(), suggestionMark)
	if !mistyped {
		return cli.Misuse(flagError(err), hint)
	}
	return cli.Misuse(errors.New(text), "did you mean 'weir "+strings.Join(strings.Fields(meant), "' or 'weir ")+"'?", hint)
}

// suggestionMark is the text that cobra writes between an unknown command and similar names.
const suggestionMark = "\n\nDid you mean this?\n"

// flagError rewrites an error of the flag parser for users who do not know Go.
func flagError(err error) error {
	reason, what := errors.Unwrap(err), ""
	switch {
	case reason == nil:
		return err
	case errors.Is(reason, strconv.ErrSyntax):
		what = "not a whole number"
	case errors.Is(reason, strconv.ErrRange):
		what = "above 64 bits"
	case strings.HasPrefix(reason.Error(), "time: "):
		what = "not a duration like 500ms, 10s or 1h30m"
	default:
		return err
	}
	return errors.New(strings.Replace(err.Error(), reason.Error(), what, 1))
}
