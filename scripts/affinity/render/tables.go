package render

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/affinityengine/affinity/shared/store"
)

// Tables writes what every table and family of Bigtable holds.
func Tables(out io.Writer, tables []store.Table) error {
	w := bufio.NewWriter(out)
	for i, t := range tables {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %s\n  key %s\n", t.Name, t.Holds, t.Key)
		for _, f := range t.Families {
			fmt.Fprintf(w, "  %s: %s\n    owner %s, %s\n", f.Name, f.Holds, f.Owner, personal(f))
			for _, format := range f.Formats {
				fmt.Fprintf(w, "    column %s\n", format)
			}
			if len(f.DerivedFrom) > 0 {
				fmt.Fprintf(w, "    derived from %s\n", strings.Join(f.DerivedFrom, ", "))
			}
		}
	}
	return w.Flush()
}

func personal(f store.Family) string {
	switch {
	case !f.Personal:
		return "not personal"
	case f.Erased == store.LeavesRow:
		return "personal; a deletion of the user leaves ticket counter, tombstone and opt-out"
	case f.Erased == store.ByAgeOfCells:
		return fmt.Sprintf("personal, for %d days", f.Days)
	case f.Erased == store.ByBuild:
		return "personal, until the next build"
	}
	return "personal, removed by a deletion of the user"
}
