package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/spf13/cobra"
)

// JSONUsage describes the flag --json of commands that show one answer.
const JSONUsage = "print the engine's answer as it is"

// JSONDocument describes the flag --json of commands that make a report.
const JSONDocument = "print one JSON document"

// PrintRaw prints an answer of the engine as it came.
func PrintRaw(out io.Writer, raw []byte) error {
	_, err := fmt.Fprintf(out, "%s\n", bytes.TrimSpace(raw))
	return err
}

// PrintIndented prints the engine's answer, indented.
func PrintIndented(out io.Writer, raw []byte) error {
	var indented bytes.Buffer
	if err := json.Indent(&indented, bytes.TrimSpace(raw), "", "  "); err != nil {
		return fmt.Errorf("the engine's answer is not JSON: %w", err)
	}
	_, err := fmt.Fprintln(out, indented.String())
	return err
}

// ReadPages reads pages of at most most items until it has read wanted items or no page
// follows. read is given how many items to ask for; it returns how many there are so far,
// and whether a page follows.
func ReadPages(wanted, most int, read func(limit int) (have int, more bool, err error)) error {
	for have, more := 0, true; more && have < wanted; {
		var err error
		if have, more, err = read(min(wanted-have, most)); err != nil {
			return err
		}
	}
	return nil
}

// NoProfile adds to an error about the profile of a user what was done with it, or why the
// user may have none.
func NoProfile(c *client.Client, doing, user string, err error) error {
	switch {
	case err == nil:
		return nil
	case StatusOf(err) == http.StatusNotFound:
		return fmt.Errorf("no profile of %s in app %s: the engine holds no event of this user, or the events are "+
			"older than the retention "+
			"or were deleted (%w)", user, c.App(), err)
	}
	return fmt.Errorf("%s the profile of %s: %w", doing, user, err)
}

// UserArg requires one argument, a user token.
func UserArg(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] == "" {
		return cli.Usagef("USER must not be empty")
	}
	return cli.Args("USER")(cmd, args)
}
