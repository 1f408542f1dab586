package refused

import (
	"context"
	"log/slog"
	"time"

	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/store"
)

// LinkTable keeps refused links.
type LinkTable interface {
	RecordRefusedLinks(ctx context.Context, app string, at time.Time, r store.Refusals) error
}

// Links collects the links between tokens that events ask for and do not get, as a Recorder does refused events.
type Links struct {
	recorder *Recorder
	usage    *usage.Counter
}

// NewLinks returns a Links that writes in the background, and counts what an app used.
func NewLinks(s LinkTable, counter *usage.Counter, now func() time.Time, log *slog.Logger) *Links {
	return &Links{New(linkTable{s}, now, log), counter}
}

// Record adds a refused link of an app: profile.Identities.SetRefused takes it.
func (l *Links) Record(app string, of store.RefusedLink) {
	l.usage.RefusedLink(app)
	if of.User == "" {
		l.recorder.Count(app, of.Reason, 1)
		return
	}
	of.At = l.recorder.now()
	l.recorder.Record(app, of.Refusal())
}

// Flush writes the links that wait. Those that cannot be written wait further.
func (l *Links) Flush(ctx context.Context) error { return l.recorder.Flush(ctx) }

// linkTable makes a LinkTable the Table of a Recorder.
type linkTable struct{ LinkTable }

func (t linkTable) RecordRefused(ctx context.Context, app string, at time.Time, r store.Refusals) error {
	return t.RecordRefusedLinks(ctx, app, at, r)
}
