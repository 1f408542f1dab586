package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store/rowstream"
)

// AnalysisLag is how much older than a scan a write must be for ScanLong to rely on it.
// Data Boost reads what was written 35 minutes before, and may miss what is newer. The
// rest is for clocks that differ.
const AnalysisLag = 40 * time.Minute

const (
	analysisBytes = 4 << 20 // of originals that ScanLong holds
	changedUsers  = 10_000  // that ScanLong reads from the primary cluster at a time
)

// ScanLong is Scan for a caller that reads much. If there is an app profile for analysis, it
// reads the rows through that, except those of users who have drawn a ticket within
// AnalysisLag. It reads these from the cluster that is written. So it passes every row
// that Scan would, but for those of writers who have not drawn their tickets yet. It may
// also pass rows that a purge has removed within AnalysisLag: the tombstone of their user
// covers them. The caller must not have changed the layout within AnalysisLag, because a
// migration draws no tickets.
func (l Log) ScanLong(ctx context.Context, n schema.Name, r Range, since int64, fn func(Entry) error) error {
	return l.scanLong(ctx, r, longScan{l, n, since, fn, analysisBytes, changedUsers})
}

func (l Log) scanLong(ctx context.Context, r Range, s longScan) error {
	if l.s.tables.in(l.app).analysis == nil {
		return l.Scan(ctx, s.n, r, s.since, s.fn)
	}
	for from, to := r.ends(l.app); from < to; {
		var err error
		if from, err = s.chunk(ctx, from, to); err != nil {
			return fmt.Errorf("scan log of %s, %s, for long: %w", l.app, s.n, err)
		}
	}
	return nil
}

// longScan is a call of ScanLong.
type longScan struct {
	log   Log
	n     schema.Name
	since int64
	fn    func(Entry) error
	bytes int // of a chunk
	users int // that are read from the cluster that is written, of a chunk
}

// errChunkFull ends a chunk.
var errChunkFull = errors.New("the chunk is full")

// chunk passes the first rows between two keys, and returns the key behind them.
func (s longScan) chunk(ctx context.Context, from, to string) (string, error) {
	begun := s.log.s.now()
	entries, to, err := s.analysed(ctx, from, to)
	if err != nil {
		return "", err
	}
	// Each user who has drawn a ticket until now is in the list. So an event of any other
	// user was acknowledged long enough before the rows were read.
	changed, to, err := s.changed(ctx, from, to, begun.Add(-AnalysisLag))
	if err != nil {
		return "", err
	}
	next := 0
	pass := func(until string) error {
		for ; next < len(entries) && entries[next].key < until; next++ {
			if !changed[entries[next].User] {
				if err := s.fn(entries[next]); err != nil {
					return err
				}
			}
		}
		return nil
	}
	var rows bigtable.RowRangeList
	for user := range changed {
		key := userKey(s.log.app, user)
		if begin, end := max(from, key), min(to, prefixEnd(key)); begin < end {
			rows = append(rows, bigtable.NewRange(begin, end))
		}
	}
	if len(rows) > 0 {
		err := s.log.scan(ctx, s.n, rows, sinceFilter(s.since), s.since, func(e Entry) error {
			if err := pass(e.key); err != nil {
				return err
			}
			return s.fn(e)
		})
		if err != nil {
			return "", err
		}
	}
	return to, pass(to)
}

// analysed returns the first rows between two keys as the app profile for analysis has
// them, and the key behind them.
func (s longScan) analysed(ctx context.Context, from, to string) (entries []Entry, behind string, err error) {
	size, full := 0, false
	log := s.log
	log.analysis = true
	err = log.scan(ctx, s.n, bigtable.NewRange(from, to), sinceFilter(s.since), s.since, func(e Entry) error {
		entries = append(entries, e)
		if size += e.Size() + len(e.Original); size >= s.bytes {
			full = true
			return errChunkFull
		}
		return nil
	})
	if full {
		return entries, entries[len(entries)-1].key + "\x00", nil
	}
	return entries, to, err
}

// changed returns users whose logs lie between two keys and who have drawn a ticket
// since a time, and the key up to which these are all.
func (s longScan) changed(ctx context.Context, from, to string, since time.Time) (map[string]bool, string, error) {
	app := s.log.app
	changed, last := map[string]bool{}, ""
	first := app + ","
	if user := userOf(from); user != "" {
		first = userKey(app, user)
	}
	drawn := bigtable.ChainFilters(column(familyState, columnCounter),
		bigtable.TimestampRangeFilter(since, time.Time{}), bigtable.StripValueFilter())
	err := s.log.s.readRows(ctx, s.log.s.tables.of(app, allUsers).users, bigtable.NewRange(first, to),
		func(r *rowstream.Row) error {
			last = userOf(string(r.Key))
			changed[strings.Clone(last)] = true
			return nil
		}, bigtable.RowFilter(drawn), bigtable.LimitRows(int64(s.users)))
	if err != nil {
		return nil, "", fmt.Errorf("read who has changed: %w", err)
	}
	if len(changed) == s.users {
		to = min(to, prefixEnd(userKey(app, last)))
	}
	return changed, to, nil
}
