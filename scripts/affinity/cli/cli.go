// Package cli holds what the project's command lines have in common: exit
// codes, wrong usage, checks of arguments, and what a terminal can show.
//
// It is separate because two programs need it: affinity, and the benchmarks
// that `affinity bench` runs. It keeps no state.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

// Exit codes of every command.
const (
	ExitOK     = 0
	ExitFailed = 1 // the command failed: no engine, a refusal, broken input
	ExitUsage  = 2 // the command line is wrong
)

// Execute runs one command line, prints the error that it ends with to stderr,
// and returns the exit code of the process. An error that has a method
// ExitCode() int chooses the code itself.
func Execute(ctx context.Context, root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	valid := false // whether cobra has accepted flags and arguments
	check := root.PersistentPreRunE
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		valid = true
		if check == nil {
			return nil
		}
		return check(cmd, args)
	}
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	code := ExitFailed
	var coded interface{ ExitCode() int }
	switch {
	case errors.As(err, &coded):
		code = coded.ExitCode()
	case !valid:
		code = ExitUsage
	}
	var silent SilentError
	switch {
	case errors.As(err, &silent):
	case code == ExitUsage:
		fmt.Fprintf(stderr, "affinity: %v\nRun '%s --help' for its usage.\n", err, cmd.CommandPath())
	case code == ExitFailed && ctx.Err() != nil:
		fmt.Fprintf(stderr, "affinity: interrupted: %v\n", err)
	default:
		fmt.Fprintf(stderr, "affinity: %v\n", err)
	}
	return code
}

// A SilentError ends the command with this exit code. Whatever there was to say
// has been printed.
type SilentError int

// Error is never printed.
func (e SilentError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// ExitCode is the code itself.
func (e SilentError) ExitCode() int { return int(e) }

// usageError is a mistake in the command line that cobra cannot find.
type usageError struct{ message string }

func (e usageError) Error() string { return e.message }
func (e usageError) ExitCode() int { return ExitUsage }

// Usagef returns an error that ends the command with ExitUsage and a hint at
// its help.
func Usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// Sleep waits for d, or returns the context's error if that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// PrintJSON prints v as an indented JSON document.
func PrintJSON(out io.Writer, v any) error {
	document, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	_, err = fmt.Fprintf(out, "%s\n", document)
	return err
}
