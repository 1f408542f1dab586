package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/app/auditlog"
)

// Columns of a row of the audit log, and of the row of the app's secret.
const (
	columnBegun = "begun"
	columnEnded = "ended"
	columnSalt  = "salt"
)

// saltBytes is the size of an app's secret.
const saltBytes = 32

// maxAuditScan is how many entries AuditLog reads at most, whatever it selects.
const maxAuditScan = 10_000

// An ID begins with a digit, so the row of the secret sorts behind all entries.
func auditKey(app, id string) string { return app + "," + id }

func auditSaltKey(app string) string { return app + ",salt" }

// BeginEntry stores an entry of an app that has not ended.
func (s AuditLog) BeginEntry(ctx context.Context, app string, e auditlog.Entry) error {
	return s.putEntry(ctx, app, e.ID, columnBegun, e)
}

// EndEntry stores how an entry ended.
func (s AuditLog) EndEntry(ctx context.Context, app, id string, end auditlog.End) error {
	return s.putEntry(ctx, app, id, columnEnded, end)
}

func (s *Store) putEntry(ctx context.Context, app, id, column string, v any) error {
	value, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode an entry of the audit log: %w", err)
	}
	m := bigtable.NewMutation()
	m.Set(familyEntry, column, bigtable.Now(), value)
	if err := s.tables.of(app, allUsers).auditLog.Apply(ctx, auditKey(app, id), m); err != nil {
		return fmt.Errorf("write the audit log of %s: %w", app, err)
	}
	return nil
}

// AuditSalt returns the secret with which the audit log of an app hashes users. The
// first call makes it; of several at once, all return the same.
func (s AuditLog) AuditSalt(ctx context.Context, app string) ([]byte, error) {
	salt, err := s.readSalt(ctx, app)
	if err != nil || salt != nil {
		return salt, err
	}
	fresh := make([]byte, saltBytes)
	_, _ = rand.Read(fresh) // it never fails
	m := bigtable.NewMutation()
	m.Set(familySecret, columnSalt, bigtable.Now(), fresh)
	absent := bigtable.NewCondMutation(bigtable.FamilyFilter(familySecret), nil, m)
	err = retryAtomic(ctx, func() error {
		return s.tables.of(app, allUsers).auditLog.Apply(ctx, auditSaltKey(app), absent)
	})
	if err != nil {
		return nil, fmt.Errorf("make the secret of the audit log of %s: %w", app, err)
	}
	salt, err = s.readSalt(ctx, app)
	if err == nil && salt == nil {
		err = fmt.Errorf("the audit log of %s has no secret after it was made", app)
	}
	return salt, err
}

func (s *Store) readSalt(ctx context.Context, app string) ([]byte, error) {
	row, err := s.tables.of(app, allUsers).auditLog.ReadRow(ctx, auditSaltKey(app), newestCells)
	if err != nil {
		return nil, fmt.Errorf("read the secret of the audit log of %s: %w", app, err)
	}
	for _, item := range row[familySecret] {
		return item.Value, nil
	}
	return nil, nil
}

// AuditLog returns entries of an app, the newest first. next is the ID after which
// more may follow, empty if none do. It reads at most maxAuditScan entries, so a
// query that selects few may return fewer than its limit, or none, and a next.
func (s AuditLog) AuditLog(ctx context.Context, app string,
	q auditlog.Query) (entries []auditlog.Entry, next string, err error) {
	return s.auditLog(ctx, app, q, maxAuditScan)
}

func (s *Store) auditLog(ctx context.Context, app string, q auditlog.Query,
	maxScan int) (entries []auditlog.Entry, next string, err error) {
	start := auditKey(app, "0")
	if q.After != "" {
		start = auditKey(app, q.After) + "\x00"
	}
	limit := maxScan
	if q.Action == "" && q.User == "" {
		limit = min(limit, q.Limit+1) // one more shows that more follow
	}
	read, last := 0, ""
	err = s.tables.of(app, allUsers).auditLog.ReadRows(ctx, bigtable.NewRange(start, auditKey(app, ":")),
		func(r bigtable.Row) bool {
			if len(entries) == q.Limit {
				next = last
				return false
			}
			read++
			e := decodeEntry(r)
			if last = e.ID; q.Matches(e) {
				entries = append(entries, e)
			}
			return true
		}, bigtable.RowFilter(bigtable.ChainFilters(bigtable.FamilyFilter(familyEntry), bigtable.LatestNFilter(1))),
		bigtable.LimitRows(int64(limit)))
	if err != nil {
		return nil, "", fmt.Errorf("read the audit log of %s: %w", app, err)
	}
	if next == "" && read == maxScan {
		next = last
	}
	return entries, next, nil
}

// unreadable is the detail of an entry that does not decode. The others are listed
// all the same.
const unreadable = "this entry cannot be read"

func decodeEntry(r bigtable.Row) auditlog.Entry {
	_, id, _ := strings.Cut(r.Key(), ",")
	e, end := auditlog.Entry{}, auditlog.End{Outcome: auditlog.Unknown}
	var failed error
	for _, item := range r[familyEntry] {
		switch strings.TrimPrefix(item.Column, familyEntry+":") {
		case columnBegun:
			failed = errors.Join(failed, json.Unmarshal(item.Value, &e))
		case columnEnded:
			failed = errors.Join(failed, json.Unmarshal(item.Value, &end))
		}
	}
	if failed != nil || e.Action == "" || !auditlog.ValidID(id) {
		e = auditlog.Entry{Detail: unreadable}
	}
	if e.ID, e.Outcome = id, end.Outcome; auditlog.ValidID(id) {
		e.At = auditlog.TimeOf(id)
	}
	if end.Subject != "" {
		e.Subject = end.Subject
	}
	if end.Detail != "" {
		e.Detail = end.Detail
	}
	return e
}
