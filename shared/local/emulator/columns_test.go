package emulator_test

import (
	"errors"
	"fmt"
	"testing"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/local/must"
)

// A read sees every column of its row under its own name, while writes add
// columns to the row and remove them.
func TestBttestReadsWholeRowsBesideWrites(t *testing.T) {
	ctx, admin, client := startBttest(t)
	must.Succeed(t, errors.Join(admin.CreateTable(ctx, "t"), admin.CreateColumnFamily(ctx, "t", "f")))
	table := client.Open("t")
	const last = 40
	name := func(i int) string { return fmt.Sprintf("c%02d", i) }
	all := bigtable.NewMutation()
	for i := range last {
		all.Set("f", name(i), 1000, []byte(name(i)))
	}
	must.Succeed(t, table.Apply(ctx, "r", all))

	written := make(chan error, 1)
	go func() {
		for range 300 {
			add, remove := bigtable.NewMutation(), bigtable.NewMutation()
			add.Set("f", "b", 1000, []byte("b"))
			remove.DeleteCellsInColumn("f", "b")
			if err := errors.Join(table.Apply(ctx, "r", add), table.Apply(ctx, "r", remove)); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	for {
		row, err := table.ReadRow(ctx, "r")
		must.Succeed(t, err)
		seen := map[string]bool{}
		for _, cell := range row["f"] {
			seen[cell.Column] = true
			if cell.Column != "f:"+string(cell.Value) {
				t.Fatalf("column %q holds the value of f:%s", cell.Column, cell.Value)
			}
		}
		for i := range last {
			if !seen["f:"+name(i)] {
				t.Fatalf("the read misses column f:%s", name(i))
			}
		}
		select {
		case err := <-written:
			must.Succeed(t, err)
			return
		default:
		}
	}
}
