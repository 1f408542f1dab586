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
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes of every command.
const (
	ExitOK     = 0
	ExitFailed = 1 // the command failed: no engine, a refusal, broken input
	ExitUsage  = 2 // the command line is wrong
)

// Streams are the standard streams of a command line.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Execute runs one command line, prints the error that it ends with to stderr,
// and returns the exit code of the process. Errors of WithCode and Usagef, and
// SilentError, choose the code. advise may return a line to print after
// an error: what to do about it; it may be nil.
func Execute(ctx context.Context, root *cobra.Command, args []string, streams Streams, advise func(error) string) int {
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
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	code := ExitFailed
	var coded interface{ exitCode() int } // unexported: an *exec.ExitError must not choose
	switch {
	case errors.As(err, &coded):
		code = coded.exitCode()
	case !valid:
		code = ExitUsage
	}
	var silent SilentError
	if errors.As(err, &silent) {
		return code
	}
	text := printableLines(err.Error())
	switch {
	case code == ExitUsage:
		text += fmt.Sprintf("\nRun '%s --help' for its usage.", cmd.CommandPath())
	case code == ExitFailed && ctx.Err() != nil:
		text = "interrupted: " + text
	}
	if advise != nil {
		if advice := advise(err); advice != "" {
			text += "\n" + advice
		}
	}
	fmt.Fprintf(streams.Err, "affinity: %s\n", text)
	return code
}

// printableLines makes a text of several lines safe for a terminal.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = Printable(lines[i])
	}
	return strings.Join(lines, "\n")
}

// WithCode returns err with an exit code of its own.
func WithCode(err error, code int) error { return codedError{err, code} }

type codedError struct {
	error
	code int
}

func (e codedError) exitCode() int { return e.code }
func (e codedError) Unwrap() error { return e.error }

// A SilentError ends the command with this exit code. Whatever there was to say
// has been printed.
type SilentError int

// Error is never printed.
func (e SilentError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func (e SilentError) exitCode() int { return int(e) }

// usageError is a mistake in the command line that cobra cannot find.
type usageError struct{ message string }

func (e usageError) Error() string { return e.message }
func (e usageError) exitCode() int { return ExitUsage }

// Usagef returns an error that ends the command with ExitUsage and a hint at
// its help.
func Usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// PrintJSON prints v as an indented JSON document.
func PrintJSON(out io.Writer, v any) error {
	document, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	_, err = fmt.Fprintf(out, "%s\n", document)
	return err
}

// List returns words as a list: "a, b and c".
func List(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
