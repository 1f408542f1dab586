package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/affinityengine/affinity/shared/api/client"
)

// JSONUsage describes the flag --json of commands that show one answer.
const JSONUsage = "print the engine's answer as it is"

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

// NoProfile says why a user may have no profile.
func NoProfile(c *client.Client, user string, err error) error {
	return fmt.Errorf("no profile of %s in app %s: the engine holds no event of this user, or the events are older than the retention "+
		"or were deleted (%w)", user, c.App(), err)
}
