package store

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"
)

// ExchangeRates replaces what a process said of an app, and returns what each process
// said within a day, by process. It is two requests on the app's one row.
func (s Rates) ExchangeRates(ctx context.Context, app, process string, said []byte) (map[string][]byte, error) {
	table, m := s.tables.of(app, allUsers).rates, bigtable.NewMutation()
	m.Set(familySaid, process, bigtable.Now(), said)
	if err := table.Apply(ctx, app+",", m); err != nil {
		return nil, fmt.Errorf("write rates of %s: %w", app, err)
	}
	row, err := table.ReadRow(ctx, app+",", newestCells)
	if err != nil {
		return nil, fmt.Errorf("read rates of %s: %w", app, err)
	}
	all := map[string][]byte{}
	for _, item := range row[familySaid] {
		all[item.Column[len(familySaid)+1:]] = item.Value
	}
	return all, nil
}
