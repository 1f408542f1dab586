package job

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// TableStep works on the rows of a table behind a key. After each request it calls done with
// the number of rows and the key of the last one, and returns the error that done returns.
type TableStep func(step int, after string, done func(rows int, last string) error) error

// errTableBudget ends a step whose time is over.
var errTableBudget = errors.New("the time of the task is over")

// Tables works on tables one after the other, for the Process of a Work. tables are their
// names, one for each step; over says that the time of the task is over. The places of such
// a shard are its start, the number of a step, the name of the step's table and a key in it,
// with commas between them: they grow.
func Tables(shard Shard, tables []string, over func() bool, progress func(Progress) error,
	step TableStep) (Progress, error) {
	p := Progress{Next: shard.Next}
	var counted int64
	first, after := tablePlace(shard, tables)
	for i := first; i < len(tables); i++ {
		err := step(i, after, func(rows int, last string) error {
			counted += int64(rows)
			p.Next = fmt.Sprintf("%s,%02d,%s,%s", shard.From, i, tables[i], url.QueryEscape(last))
			p.Counts = Counts{CountRows: counted}
			if err := progress(p); err != nil {
				return err
			}
			if over() {
				return errTableBudget
			}
			return nil
		})
		if errors.Is(err, errTableBudget) {
			return p, nil
		}
		if err != nil {
			return p, err
		}
		after = ""
	}
	p.Done = true
	return p, nil
}

// tablePlace returns the step with which a shard goes on, and the key behind which it does:
// zero at the beginning of a pass. Another version of the engine may have more tables, so
// the name of the table decides where the number is of another one.
func tablePlace(s Shard, tables []string) (step int, after string) {
	rest, ok := strings.CutPrefix(s.Next, s.From+",")
	parts := strings.SplitN(rest, ",", 3)
	if !ok || len(parts) < 3 {
		return 0, ""
	}
	after, err := url.QueryUnescape(parts[2])
	if err != nil {
		return 0, ""
	}
	if n, err := strconv.Atoi(parts[0]); err == nil && n >= 0 && n < len(tables) && tables[n] == parts[1] {
		return n, after
	}
	if n := slices.Index(tables, parts[1]); n >= 0 {
		return n, after
	}
	return 0, ""
}
