package render

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/local/simulate"
)

// SearchResults are the orders of one search by several engines, each with the
// part that a boost added to the request.
type SearchResults struct {
	Names     map[string]string // of objects by ID
	engines   []string
	fragments []string
	hits      [][]simulate.Hit
}

// Add adds an engine with its part of the request, "" if there is none, and its
// hits: as many as every other engine has.
func (s *SearchResults) Add(engine, fragment string, hits []simulate.Hit) {
	s.engines, s.fragments, s.hits = append(s.engines, engine), append(s.fragments, fragment), append(s.hits, hits)
}

const (
	fragmentLines  = 6
	fragmentIndent = 4
)

// Search prints the parts of the request, shortened, and the orders side by side.
func Search(out io.Writer, s SearchResults) error {
	var text bytes.Buffer
	for i, engine := range s.engines {
		if s.fragments[i] == "" {
			continue
		}
		lines := Fragment(s.fragments[i], cli.Width(out)-fragmentIndent-1, fragmentLines)
		fmt.Fprintf(&text, "  %s\n", engine)
		for _, line := range lines {
			fmt.Fprintf(&text, "%*s%s\n", fragmentIndent, "", cli.Printable(line))
		}
	}
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "  \t%s\n", strings.Join(s.engines, "\t"))
	for place := range s.hits[0] {
		fmt.Fprintf(table, "  %d", place+1)
		for _, hits := range s.hits {
			fmt.Fprintf(table, "\t%s", cli.Printable(s.Names[hits[place].ID]))
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := out.Write(text.Bytes())
	return err
}

// clauseEnds are what stands before, between and behind the clauses of a list. The
// last character begins the next line.
var clauseEnds = []string{"[{", "},{", "}]", "[(", ",("}

// Fragment breaks a part of a request into lines of a width, after the clauses of
// its lists. If they are more than that many lines, it leaves out clauses in the
// middle and says so.
func Fragment(text string, width, lines int) []string {
	var clauses []string // each with the comma after it
	for rest := text; rest != "" || clauses == nil; {
		end := len(rest)
		for _, between := range clauseEnds {
			if at := strings.Index(rest, between); at >= 0 {
				end = min(end, at+len(between)-1)
			}
		}
		clauses, rest = append(clauses, rest[:end]), rest[end:]
	}
	last := clauses[len(clauses)-1] // what follows the list is always shown
	clauses = clauses[:len(clauses)-1]
	var shown []string
	for i, clause := range clauses {
		if n := len(shown); n > 0 && len(shown[n-1])+len(clause) <= width {
			shown[n-1] += clause
			continue
		}
		if len(shown) == lines-2 {
			shown = append(shown, fmt.Sprintf("... %d more ...", len(clauses)-i))
			break
		}
		shown = append(shown, clause)
	}
	if n := len(shown); n > 0 && len(shown[n-1])+len(last) <= width {
		shown[n-1] += last
		return shown
	}
	return append(shown, last)
}
