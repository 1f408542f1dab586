package differ

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"text/tabwriter"
)

// tally counts what a campaign did and compared.
type tally struct {
	mu   sync.Mutex
	ops  map[string]int
	same map[string]int
}

func newTally() *tally { return &tally{ops: map[string]int{}, same: map[string]int{}} }

// did counts an operation.
func (t *tally) did(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ops[what]++
}

// compared counts answers that were compared.
func (t *tally) compared(what string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.same[what] += n
}

// print prints the counts as a table of two columns: what happened, and what was compared.
func (t *tally) print(out io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ops, same := slices.Sorted(maps.Keys(t.ops)), slices.Sorted(maps.Keys(t.same))
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "done\t\tcompared\t")
	for i := range max(len(ops), len(same)) {
		for n, column := range []struct {
			names  []string
			counts map[string]int
		}{{ops, t.ops}, {same, t.same}} {
			if n > 0 {
				fmt.Fprint(table, "\t")
			}
			if i < len(column.names) {
				fmt.Fprintf(table, "%s\t%d", column.names[i], column.counts[column.names[i]])
			} else {
				fmt.Fprint(table, "\t")
			}
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush()
}
