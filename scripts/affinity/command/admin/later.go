package admin

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
)

// JobDetails is what a deployed engine's jobs say of users.
type JobDetails interface {
	job.Details
	Close() error
}

// openDetails connects with the operator's Google credentials, or to the emulator that
// BIGTABLE_EMULATOR_HOST names.
func openDetails(ctx context.Context, tables Bigtables) (JobDetails, error) {
	s, err := tables.open(ctx)
	if err != nil {
		return nil, err
	}
	return s.Jobs, nil
}

// later is a table that opens when it is first asked for: most commands need none.
type later[T io.Closer] struct {
	open func(context.Context) (T, error)

	mu    sync.Mutex
	table *T
}

// Close closes the table if it is open.
func (l *later[T]) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.table == nil {
		return nil
	}
	return (*l.table).Close()
}

func (l *later[T]) opened(ctx context.Context) (T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.table == nil {
		table, err := l.open(ctx)
		if err != nil {
			return table, err
		}
		l.table = &table
	}
	return *l.table, nil
}

func (l *later[T]) with(ctx context.Context, do func(T) error) error {
	table, err := l.opened(ctx)
	if err != nil {
		return err
	}
	return do(table)
}

// laterDetails are details of jobs that open when they are first asked for.
type laterDetails struct{ later[JobDetails] }

// PutJobDetails is that of job.Details, as are the following.
func (l *laterDetails) PutJobDetails(ctx context.Context, app, region, row, version string, ended bool,
	details []byte) error {
	return l.with(ctx, func(d JobDetails) error { return d.PutJobDetails(ctx, app, region, row, version, ended, details) })
}

func (l *laterDetails) JobDetails(ctx context.Context, app, region string,
	versions map[string]string) (found map[string][]byte, err error) {
	err = l.with(ctx, func(d JobDetails) (err error) { found, err = d.JobDetails(ctx, app, region, versions); return err })
	return found, err
}

func (l *laterDetails) DropJobDetails(ctx context.Context, app, region, row string, versions ...string) error {
	return l.with(ctx, func(d JobDetails) error { return d.DropJobDetails(ctx, app, region, row, versions...) })
}

func (l *laterDetails) DropOpenJobDetails(ctx context.Context, app, region, row string) error {
	return l.with(ctx, func(d JobDetails) error { return d.DropOpenJobDetails(ctx, app, region, row) })
}

func (l *laterDetails) ForgetJobDetails(ctx context.Context, app, prefix string) error {
	return l.with(ctx, func(d JobDetails) error { return d.ForgetJobDetails(ctx, app, prefix) })
}

// ChangeLog is an audit log that the tool has opened.
type ChangeLog interface {
	auditlog.Log
	Close() error
}

// openAuditLog opens the audit log of a deployed engine, with the operator's Google
// credentials.
func openAuditLog(ctx context.Context, tables Bigtables) (ChangeLog, error) {
	if os.Getenv("BIGTABLE_EMULATOR_HOST") == "" && os.Getenv("FIRESTORE_EMULATOR_HOST") != "" {
		return nil, errors.New("set BIGTABLE_EMULATOR_HOST too, which holds the audit log; for an engine of " +
			"`affinity up` give --url and AFFINITY_OPERATOR")
	}
	s, err := tables.open(ctx)
	if err != nil {
		return nil, err
	}
	return s.AuditLog, nil
}

// laterLog is an audit log that opens when it is first written: commands that change
// nothing need no access to Bigtable.
type laterLog struct{ later[ChangeLog] }

func (l *laterLog) BeginEntry(ctx context.Context, app, id string, entry []byte) error {
	return l.with(ctx, func(log ChangeLog) error { return log.BeginEntry(ctx, app, id, entry) })
}

func (l *laterLog) EndEntry(ctx context.Context, app, id string, end []byte) error {
	return l.with(ctx, func(log ChangeLog) error { return log.EndEntry(ctx, app, id, end) })
}

func (l *laterLog) AuditSalt(ctx context.Context, app string) (salt []byte, err error) {
	err = l.with(ctx, func(log ChangeLog) (err error) { salt, err = log.AuditSalt(ctx, app); return err })
	return salt, err
}

// recorded makes the changes of a deployed engine's configuration recorded ones.
func (a *appTool) recorded(s *config.Store) (auditlog.Operated, *laterLog) {
	log := &laterLog{}
	log.open = func(ctx context.Context) (ChangeLog, error) { return a.open.Log(ctx, a.bigtables(s)) }
	return auditlog.NewOperated(s, a.recorder(log)), log
}

// recorder records what the operator does. What it cannot say in the log it prints.
func (a *appTool) recorder(log auditlog.Log) *auditlog.Recorder {
	return auditlog.New(log, time.Now, slog.New(slog.NewTextHandler(a.Err, nil)), nil)
}
