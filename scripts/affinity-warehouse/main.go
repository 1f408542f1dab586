// Command affinity-warehouse writes what an app has as Parquet, for DuckDB, BigQuery, Spark and other tools
// of analysts, and compares such a folder with a dump. `affinity warehouse` runs it and gives it the lines: on
// standard input it reads a line {"exportedProfile":...} for each profile, and then a dump (api.ExportLine). A dump
// alone, such as a file of `affinity dump`, is read as well.
//
// It is a program of its own so that neither the functions nor the tool compile the library for Parquet.
// It keeps no data but the folder that it writes.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

const usage = `usage: affinity-warehouse export --app APP --to DIR < LINES
       affinity-warehouse verify --app APP DIR < LINES

LINES are those of affinity dump, for export with the profiles before them:
affinity warehouse export and affinity warehouse verify give them.
`

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "affinity-warehouse: %v\n", err)
		if errors.Is(err, errUsage) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

var errUsage = errors.New("see affinity warehouse --help")

// run executes one command line.
func run(args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("no command: %w\n%s", errUsage, usage)
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	app, to := flags.String("app", "", ""), flags.String("to", "", "")
	if err := flags.Parse(args[1:]); err != nil {
		return fmt.Errorf("%w: %w\n%s", err, errUsage, usage)
	}
	in := bufio.NewReaderSize(stdin, 1<<20)
	switch {
	case args[0] == "export" && *app != "" && *to != "" && flags.NArg() == 0:
		done, err := export(*app, *to, in)
		if err != nil {
			return fmt.Errorf("export %s to %s: %w", *app, *to, err)
		}
		_, err = fmt.Fprintf(stdout, "%s: %d events, %d profiles and %d segments of %s\n", *to, done.Events, done.Profiles,
			done.Segments, *app)
		return err
	case args[0] == "verify" && *app != "" && flags.NArg() == 1:
		report, err := verify(*app, flags.Arg(0), in)
		if err != nil {
			return fmt.Errorf("verify %s: %w", flags.Arg(0), err)
		}
		if _, err := io.WriteString(stdout, report.text()); err != nil {
			return err
		}
		return report.err()
	}
	return fmt.Errorf("%q is no command, or lacks a part: %w\n%s", args[0], errUsage, usage)
}
