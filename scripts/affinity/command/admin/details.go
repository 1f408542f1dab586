package admin

import (
	"context"
	"sync"

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

// laterDetails open the table when they are first asked for: most commands read no job.
type laterDetails struct {
	open func(ctx context.Context) (JobDetails, error)

	mu    sync.Mutex
	table JobDetails
}

func (l *laterDetails) opened(ctx context.Context) (JobDetails, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.table == nil {
		table, err := l.open(ctx)
		if err != nil {
			return nil, err
		}
		l.table = table
	}
	return l.table, nil
}

// Close closes the table if it is open.
func (l *laterDetails) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.table == nil {
		return nil
	}
	return l.table.Close()
}

func (l *laterDetails) with(ctx context.Context, do func(JobDetails) error) error {
	table, err := l.opened(ctx)
	if err != nil {
		return err
	}
	return do(table)
}

// PutJobDetails is that of job.Details, as are the following.
func (l *laterDetails) PutJobDetails(ctx context.Context, app, row, version string, ended bool, details []byte) error {
	return l.with(ctx, func(d JobDetails) error { return d.PutJobDetails(ctx, app, row, version, ended, details) })
}

func (l *laterDetails) JobDetails(ctx context.Context, app string, versions map[string]string) (found map[string][]byte, err error) {
	err = l.with(ctx, func(d JobDetails) (err error) { found, err = d.JobDetails(ctx, app, versions); return err })
	return found, err
}

func (l *laterDetails) DropJobDetails(ctx context.Context, app, row string, versions ...string) error {
	return l.with(ctx, func(d JobDetails) error { return d.DropJobDetails(ctx, app, row, versions...) })
}

func (l *laterDetails) DropOpenJobDetails(ctx context.Context, app, row string) error {
	return l.with(ctx, func(d JobDetails) error { return d.DropOpenJobDetails(ctx, app, row) })
}

func (l *laterDetails) ForgetJobDetails(ctx context.Context, app, prefix string) error {
	return l.with(ctx, func(d JobDetails) error { return d.ForgetJobDetails(ctx, app, prefix) })
}
