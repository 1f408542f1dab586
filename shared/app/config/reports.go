package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/app/documents"
)

// KeptReport is what an experiment of an app has shown, in words of package reports.
type KeptReport struct {
	Experiment string `firestore:"experiment"`
	// Month is that of a report of a month, such as 2026-11; "" is the latest report.
	Month string `firestore:"month"`
	// Definition is the hash of what said who was in which arm.
	Definition string `firestore:"definition"`
	Job        string `firestore:"job"`
	// AsOf is the instant of the log, by the engine's clock, to the microsecond.
	AsOf time.Time `firestore:"asOf"`
	Body string    `firestore:"body"` // JSON
}

// Reports keeps the reports of the experiments of apps: of each the latest one, and one for each month.
type Reports struct{ store *Store }

// ReportsOf returns the reports of a store.
func ReportsOf(s *Store) Reports { return Reports{s} }

func reportPath(appID, experiment, month string) string {
	return AppPath(appID) + "/keptReports/" + documents.ID(experiment+","+month)
}

// Kept returns a report, or ErrNotFound.
func (r Reports) Kept(ctx context.Context, appID, experiment, month string) (KeptReport, error) {
	var kept KeptReport
	if err := read(ctx, r.store.documents, reportPath(appID, experiment, month), &kept); err != nil {
		return KeptReport{}, fmt.Errorf("read the report of experiment %q of app %q: %w", experiment, appID, err)
	}
	kept.AsOf = kept.AsOf.UTC()
	return kept, nil
}

// All returns the reports of an app, by experiment, the latest one of each before those of months, the newest month
// first. It returns ErrNotFound if the app does not exist.
func (r Reports) All(ctx context.Context, appID string) ([]KeptReport, error) {
	all, err := below[KeptReport](ctx, r.store, appID, documents.Query{Collection: "keptReports"})
	if err != nil {
		return nil, fmt.Errorf("list the reports of app %q: %w", appID, err)
	}
	for i := range all {
		all[i].AsOf = all[i].AsOf.UTC()
	}
	latest := func(k KeptReport) int { return min(len(k.Month), 1) }
	slices.SortFunc(all, func(a, b KeptReport) int {
		return cmp.Or(cmp.Compare(a.Experiment, b.Experiment), cmp.Compare(latest(a), latest(b)),
			cmp.Compare(b.Month, a.Month))
	})
	return all, nil
}

// Months returns the months of which an experiment has a report, the newest first. It reads no report.
func (r Reports) Months(ctx context.Context, appID, experiment string) ([]string, error) {
	all, err := below[KeptReport](ctx, r.store, appID, documents.Query{Collection: "keptReports", Only: []string{"month"},
		Where: []documents.Condition{{Field: "experiment", Is: documents.Equal, Value: experiment}}})
	if err != nil {
		return nil, fmt.Errorf("list the reports of experiment %q of app %q: %w", experiment, appID, err)
	}
	months := []string{}
	for _, k := range all {
		if k.Month != "" {
			months = append(months, k.Month)
		}
	}
	slices.SortFunc(months, func(a, b string) int { return cmp.Compare(b, a) })
	return months, nil
}

// Keep stores a report in place of an older one of its experiment and month. It returns ErrNotFound if the app does
// not exist.
func (r Reports) Keep(ctx context.Context, appID string, report KeptReport) error {
	report.AsOf = Stamp(report.AsOf)
	err := r.store.changeApp(ctx, appID, func(app App) (App, []documents.Write, error) {
		there, err := r.Kept(ctx, appID, report.Experiment, report.Month)
		if err != nil && !errors.Is(err, ErrNotFound) || there.AsOf.After(report.AsOf) {
			return app, nil, err
		}
		return app, []documents.Write{documents.Put(reportPath(appID, report.Experiment, report.Month), report)}, nil
	})
	if err != nil {
		return fmt.Errorf("keep the report of experiment %q of app %q: %w", report.Experiment, appID, err)
	}
	return nil
}
