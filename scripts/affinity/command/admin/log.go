package admin

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
)

// ChangeLog is an audit log that the tool has opened.
type ChangeLog interface {
	auditlog.Log
	Close() error
}

// openAuditLog opens the audit log of a deployed engine, with the operator's Google
// credentials.
func openAuditLog(ctx context.Context, tables Bigtables) (ChangeLog, error) {
	if os.Getenv("BIGTABLE_EMULATOR_HOST") == "" && os.Getenv("FIRESTORE_EMULATOR_HOST") != "" {
		return nil, errors.New("set BIGTABLE_EMULATOR_HOST too, which holds the audit log; for an engine of `affinity up` give --url and AFFINITY_OPERATOR")
	}
	s, err := tables.open(ctx)
	if err != nil {
		return nil, err
	}
	return s.AuditLog, nil
}

// laterLog opens a log when it is first written: commands that change nothing need
// no access to Bigtable.
type laterLog struct {
	open func(context.Context) (ChangeLog, error)
	log  ChangeLog
}

func (l *laterLog) opened(ctx context.Context) (auditlog.Log, error) {
	if l.log == nil {
		log, err := l.open(ctx)
		if err != nil {
			return nil, err
		}
		l.log = log
	}
	return l.log, nil
}

func (l *laterLog) BeginEntry(ctx context.Context, app string, e auditlog.Entry) error {
	log, err := l.opened(ctx)
	if err != nil {
		return err
	}
	return log.BeginEntry(ctx, app, e)
}

func (l *laterLog) EndEntry(ctx context.Context, app, id string, end auditlog.End) error {
	log, err := l.opened(ctx)
	if err != nil {
		return err
	}
	return log.EndEntry(ctx, app, id, end)
}

func (l *laterLog) AuditSalt(ctx context.Context, app string) ([]byte, error) {
	log, err := l.opened(ctx)
	if err != nil {
		return nil, err
	}
	return log.AuditSalt(ctx, app)
}

func (l *laterLog) Close() error {
	if l.log == nil {
		return nil
	}
	return l.log.Close()
}

// recorded makes the changes of a deployed engine's configuration recorded ones.
func (a *appTool) recorded(s config.Store) (config.Store, *laterLog) {
	log := &laterLog{open: func(ctx context.Context) (ChangeLog, error) { return a.open.Log(ctx, a.bigtables(s)) }}
	return auditlog.NewOperated(s, a.recorder(log)), log
}

// recorder records what the operator does. What it cannot say in the log it prints.
func (a *appTool) recorder(log auditlog.Log) *auditlog.Recorder {
	return auditlog.New(log, time.Now, slog.New(slog.NewTextHandler(a.Err, nil)), nil)
}
