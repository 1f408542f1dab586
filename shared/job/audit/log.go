package audit

import (
	"context"
	"log/slog"

	"github.com/affinityengine/affinity/shared/telemetry"
)

// Log logs each difference of an audit, and counts users and differences.
func (r Report) Log(ctx context.Context, log *slog.Logger, m *telemetry.Metrics, app string) {
	m.CountAudit(ctx, r.Compared, len(r.Differences)+r.Omitted)
	for _, d := range r.Differences {
		log.LogAttrs(ctx, slog.LevelError, "audit found a difference", slog.String("app", app),
			slog.String("user", d.User), slog.String("which", d.Which), slog.String("what", d.What),
			slog.String("facet", d.Facet), slog.String("value", d.Value), slog.String("halfLife", d.HalfLife.String()),
			slog.Any("want", d.Want), slog.Any("got", d.Got), slog.String("region", d.Region))
	}
	log.LogAttrs(ctx, slog.LevelInfo, "audited", slog.String("app", app), slog.Int("sampled", r.Sampled),
		slog.Int("compared", r.Compared), slog.Int("stored", r.Stored), slog.Int("events", r.Events),
		slog.Int("differing", r.Differing), slog.Int("omitted", r.Omitted))
}
