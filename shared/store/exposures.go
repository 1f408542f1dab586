package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/score/experiment"
)

// Exposure says when a user got the first answer of an arm of an experiment. Its column is named by the experiment, by
// when that began and by the arm, and the time of the cell is that of the answer: so a user has one cell for each arm.
type Exposure struct {
	Experiment string
	// Since (ms) is when the experiment began. One of the same name that begins at another time is another one.
	Since int64
	Arm   string
	At    int64 // ms
}

// endedBy reports whether what e is of had ended when what another exposure is of began: an app has one experiment, and
// one holdout, at a time.
func (e Exposure) endedBy(o Exposure) bool {
	return (e.Experiment == experiment.OfHoldout) == (o.Experiment == experiment.OfHoldout) && e.Since < o.Since
}

// metValue is the value of each exposure's cell: an empty one is what a deletion leaves elsewhere.
var metValue = []byte("1")

func (e Exposure) column() string { return fmt.Sprintf("%s,%d,%s", e.Experiment, e.Since, e.Arm) }

// exposedTo returns the exposure in a column. Neither names of experiments nor of arms have commas.
func exposedTo(column string, at int64) (Exposure, error) {
	parts := strings.Split(column, ",")
	if len(parts) == 3 {
		if since, err := strconv.ParseInt(parts[1], 10, 64); err == nil {
			return Exposure{parts[0], since, parts[2], at / 1000}, nil
		}
	}
	return Exposure{}, fmt.Errorf("column %q: must be an experiment, its beginning and an arm", familyExposed+":"+column)
}

// Expose stores an exposure in the row of a user unless the row has an earlier one of the same arm: so of two that are
// written at once the earlier one remains, in any order. Exposures to what has ended since go. It changes nothing if
// what row says of the owner, of deletions, of opt-outs or of consents has changed since the caller has read it, and
// returns false; also if there is an earlier exposure, or the first answer was lost.
func (s Users) Expose(ctx context.Context, app, user string, row User, e Exposure) (bool, error) {
	m, at, owner := bigtable.NewMutation(), bigtable.Timestamp(e.At*1000), []byte(nil)
	for _, of := range row.Exposures {
		if of.endedBy(e) {
			m.DeleteCellsInColumn(familyExposed, of.column())
		}
	}
	m.DeleteCellsInColumn(familyExposed, e.column())
	m.Set(familyExposed, e.column(), at, metValue)
	if row.Owner != (Owner{}) {
		owner = row.Owner.appendBinary(nil)
	}
	earlier := bigtable.ChainFilters(column(familyExposed, e.column()), bigtable.TimestampRangeFilterMicros(0, at+1000))
	changed := interleave(differs(columnOwner, owner), differs(columnExcluded, row.exclusion), []bigtable.Filter{earlier})
	return s.swap(ctx, app, user, bigtable.NewCondMutation(changed, nil, m), true)
}

// ReadUserExposures is ReadUsers of the states and the exposures.
func (s Users) ReadUserExposures(ctx context.Context, app string, users []string) (map[string]User, error) {
	return s.readUsers(ctx, app, users, UserExposures)
}
