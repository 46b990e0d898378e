package program

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func TestNoFlagTakesAnEmptyTextForAbsence(t *testing.T) {
	root, started := Root()
	checked := 0
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			check(sub)
		}
		cmd.InheritedFlags() // makes those of the parents flags of the command
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			many, repeatable := f.Value.(pflag.SliceValue)
			if f.Value.Type() != "string" && !repeatable {
				return
			}
			checked++
			f.Changed = false // commands share those of their parents
			if err := cmd.Flags().Set(f.Name, ""); err != nil {
				t.Fatal(err)
			}
			*started = true
			err := root.PersistentPreRunE(cmd, nil)
			if err == nil || !strings.HasPrefix(err.Error(), "--"+f.Name+" is empty: ") || *started {
				t.Errorf("%s --%s '': got %v, want an error before the command starts", cmd.CommandPath(), f.Name, err)
			}
			if repeatable {
				_ = many.Replace([]string{"some"})
			} else {
				_ = f.Value.Set("some")
			}
		})
	}
	check(root)
	if checked < 50 {
		t.Errorf("checked %d flags, want all", checked)
	}
}
