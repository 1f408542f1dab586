package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"cloud.google.com/go/bigtable"
)

// Columns of a row of the audit log, and of the row of the app's secret.
const (
	columnBegun = "begun"
	columnEnded = "ended"
	columnSalt  = "salt"
)

// saltBytes is the size of an app's secret.
const saltBytes = 32

// An ID begins with a digit, so the row of the secret sorts behind all entries.
func auditKey(app, id string) string { return app + "," + id }

func auditSaltKey(app string) string { return app + ",salt" }

// BeginEntry stores an entry of an app that has not ended: see package auditlog.
func (s AuditLog) BeginEntry(ctx context.Context, app, id string, entry []byte) error {
	return s.putEntry(ctx, app, id, columnBegun, entry)
}

// EndEntry stores how an entry ended.
func (s AuditLog) EndEntry(ctx context.Context, app, id string, end []byte) error {
	return s.putEntry(ctx, app, id, columnEnded, end)
}

func (s *Store) putEntry(ctx context.Context, app, id, column string, value []byte) error {
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

// ScanEntries passes entries of an app, the newest first: those behind an ID, at most limit. An empty
// after stands before all. ended is nil of an entry that has not. It ends when fn returns false.
func (s AuditLog) ScanEntries(ctx context.Context, app, after string, limit int,
	fn func(id string, begun, ended []byte) bool) error {
	start := auditKey(app, "0")
	if after != "" {
		start = auditKey(app, after) + "\x00"
	}
	err := s.tables.of(app, allUsers).auditLog.ReadRows(ctx, bigtable.NewRange(start, auditKey(app, ":")),
		func(r bigtable.Row) bool {
			_, id, _ := strings.Cut(r.Key(), ",")
			var begun, ended []byte
			for _, item := range r[familyEntry] {
				switch strings.TrimPrefix(item.Column, familyEntry+":") {
				case columnBegun:
					begun = item.Value
				case columnEnded:
					ended = item.Value
				}
			}
			return fn(id, begun, ended)
		}, bigtable.RowFilter(bigtable.ChainFilters(bigtable.FamilyFilter(familyEntry), bigtable.LatestNFilter(1))),
		bigtable.LimitRows(int64(limit)))
	if err != nil {
		return fmt.Errorf("read the audit log of %s: %w", app, err)
	}
	return nil
}
