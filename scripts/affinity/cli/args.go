package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Group makes cmd a command that only holds others. Run without one of them it
// prints its help and fails.
func Group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(commands...)
	cmd.Args = Subcommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SetOut(cmd.ErrOrStderr())
		if err := cmd.Help(); err != nil {
			return err
		}
		return Usagef("%s needs a command", cmd.CommandPath())
	}
	return cmd
}

// Subcommand refuses arguments: a word after the command could only be the name
// of another. The error suggests the names that are spelled alike.
func Subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	message := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	if names := cmd.SuggestionsFor(args[0]); len(names) > 0 {
		message += fmt.Sprintf(" (did you mean %s?)", strings.Join(names, " or "))
	}
	return Usagef("%s", message)
}

// Args requires one argument for each name, in this order. Names are as in the
// command's usage line.
func Args(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return Usagef("%s is missing: %s", names[len(args)], cmd.UseLine())
		}
		return atMost(cmd, args, names)
	}
}

// OptionalArg takes at most one argument.
func OptionalArg(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error { return atMost(cmd, args, []string{name}) }
}

func atMost(cmd *cobra.Command, args, names []string) error {
	if len(args) > len(names) {
		return Usagef("unexpected argument %q after %s: %s", args[len(names)], strings.Join(names, " "), cmd.UseLine())
	}
	return nil
}

// Require fails if a flag was not given. Hint says what it takes.
func Require(cmd *cobra.Command, flag, hint string) error {
	if cmd.Flags().Changed(flag) {
		return nil
	}
	return Usagef("--%s is required: %s", flag, hint)
}

// Within fails unless the number of a flag is from low to high.
func Within(flag string, n, low, high int) error {
	if n < low || n > high {
		return Usagef("--%s %d: must be from %d to %d", flag, n, low, high)
	}
	return nil
}
