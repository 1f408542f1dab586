// Package worker is the private function that runs tasks. Cloud Tasks calls it
// for purges of deleted users, refreshes at the end of write windows, the night of each app, audits, the end of
// imports, changes of numeric bands, and the jobs of recomputes, re-enrichments, migrations, crowd statistics, date
// rows, parts of segments and deletions of apps.
// Cloud Scheduler calls it to start the nightly round, which enqueues the night of each app.
//
// A task may be delivered twice, late, or after its work is done: it then has
// no effect. The function keeps no data.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job/audit"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentbuild"
	"github.com/affinityengine/affinity/shared/job/tasks/afterimport"
	"github.com/affinityengine/affinity/shared/job/tasks/bands"
	"github.com/affinityengine/affinity/shared/job/tasks/night"
	"github.com/affinityengine/affinity/shared/job/tasks/purge"
	"github.com/affinityengine/affinity/shared/job/tasks/refresh"
	"github.com/affinityengine/affinity/shared/job/tasks/relocate"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// maxBody is the maximum size of a task in bytes.
const maxBody = 100 << 10

// Timeout is how long a request may take, as Terraform has it.
const Timeout = 10 * time.Minute

type handler struct{ Backends }

// New returns the function over its backends.
func New(b Backends) http.Handler {
	rt := b.Router(Timeout)
	h := handler{b}
	rt.Handle("POST /nightly", h.nightly)
	for _, k := range b.kinds() {
		serve(h, rt, k.Core().Plans(), k.Core().Plan)
		serve(h, rt, k.Core().Shards(), k.Core().Shard)
	}
	serve(h, rt, segmentbuild.Deltas, h.delta)
	serve(h, rt, segmentbuild.Cleaning, h.clean)
	serve(h, rt, night.Kind, h.nightOf)
	serve(h, rt, audit.Kind, h.audit)
	serve(h, rt, afterimport.Kind, h.imported)
	serve(h, rt, bands.Kind, h.banded)
	serve(h, rt, refresh.Kind, h.refresh)
	serve(h, rt, purge.Kind, h.purge)
	serve(h, rt, relocate.Kind, h.relocate)
	return rt
}

// serve registers the route of a kind of tasks. do gets a request and how often its task has
// failed before, and returns the answer. A task that does not decode, or whose app is gone, can
// never run and is dropped.
func serve[R queue.Request, A any](h handler, rt *httpapi.Router, kind queue.Kind[R],
	do func(ctx context.Context, request R, retries int) (A, error)) {
	rt.Handle("POST "+kind.Path, func(w http.ResponseWriter, r *http.Request) error {
		body, err := httpapi.ReadBody(w, r, maxBody)
		if err != nil {
			return err
		}
		request, err := kind.Decode(body)
		if err != nil {
			return h.drop(w, r, err)
		}
		answer, err := do(r.Context(), request, retries(r))
		switch {
		case errors.Is(err, errGone):
			return h.drop(w, r, err)
		case err != nil:
			return fmt.Errorf("%s: %w", kind.What, err)
		}
		return httpapi.WriteJSON(w, http.StatusOK, answer)
	})
}

// retries is the number of earlier attempts of the task of a request. It is 0 for a caller
// other than Cloud Tasks, which sends no such header.
func retries(r *http.Request) int {
	n, _ := strconv.Atoi(r.Header.Get("X-CloudTasks-TaskRetryCount"))
	return max(0, n)
}

// errGone marks the error of a task that has nothing to do any more.
var errGone = errors.New("the app is gone")

// gone marks the error of a task whose app does not exist.
func gone(err error) error {
	if errors.Is(err, config.ErrNotFound) {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return err
}

// drop logs a task that can never run and answers 200, so that Cloud Tasks does
// not retry it.
func (h handler) drop(w http.ResponseWriter, r *http.Request, reason error) error {
	h.Log.LogAttrs(r.Context(), slog.LevelError, "task dropped",
		slog.String("task", r.Header.Get("X-CloudTasks-TaskName")), slog.Any("error", reason))
	return httpapi.WriteJSON(w, http.StatusOK, map[string]any{"dropped": reason.Error()})
}

// purgeWithdrawn deletes the events of a user that count for no purpose.
func (h handler) purgeWithdrawn(ctx context.Context, request purge.Request) (map[string]int, error) {
	app, err := h.Config.App(ctx, request.App)
	if err != nil {
		return nil, gone(err)
	}
	consents := profile.ConsentsOf(h.Profiles)
	said, err := consents.Read(ctx, app, request.User)
	if err != nil {
		return nil, err
	}
	for _, of := range said.Answers {
		if slices.Contains(request.Exported, of.Name) {
			if err := h.Warehouse.Withdrawal(ctx, request.App, request.User, of.Since); err != nil {
				return nil, fmt.Errorf("publish a withdrawal to the warehouse: %w", err)
			}
		}
	}
	n, err := consents.Purge(ctx, app, request.User)
	if err == nil {
		err = h.forgetInLists(ctx, app.Purposes, request)
	}
	if err != nil {
		return nil, err
	}
	h.Log.LogAttrs(ctx, slog.LevelInfo, "withdrawn events purged", slog.String("app", request.App), slog.Int("events", n))
	return map[string]int{"purged": n}, nil
}

// purge deletes the events of a user that a deletion covers, or that count for no purpose.
func (h handler) purge(ctx context.Context, request purge.Request, _ int) (map[string]int, error) {
	if request.Withdrawn {
		return h.purgeWithdrawn(ctx, request)
	}
	if err := h.Warehouse.Deletion(ctx, request.App, request.User); err != nil && !errors.Is(err, config.ErrNotFound) {
		return nil, fmt.Errorf("publish a deletion to the warehouse: %w", err)
	}
	n, err := h.Profiles.Purge(ctx, request.App, request.User, time.UnixMilli(request.DeletedUntil))
	if err != nil {
		return nil, err
	}
	refused, err := h.Store.Refused.ForgetRefused(ctx, request.App, request.User)
	if err != nil {
		return nil, err
	}
	if err := h.forgetInLists(ctx, consent.Setting{}, request); err != nil {
		return nil, err
	}
	if !request.Last {
		request.Last = true
		if err := purge.Enqueue(ctx, h.Queue, profile.ResidentsOf(h.Profiles), request); err != nil {
			return nil, err
		}
	}
	h.Log.LogAttrs(ctx, slog.LevelInfo, "user purged", slog.String("app", request.App), slog.Int("events", n),
		slog.Int("refused", refused))
	return map[string]int{"purged": n, "refused": refused}, nil
}

// forgetInLists removes a user from the app's hot users, and from the app's sample the events
// of theirs that are deleted, of types that the user has opted out of, or that count for no purpose.
func (h handler) forgetInLists(ctx context.Context, of consent.Setting, request purge.Request) error {
	states, err := h.Profiles.StatesOf(ctx, request.App, []string{request.User})
	if errors.Is(err, config.ErrNotFound) {
		return nil // the deletion of the app removes both
	}
	if err != nil {
		return err
	}
	now, until := h.Now(), time.UnixMilli(request.DeletedUntil)
	if until.Before(now) {
		until = now // processes count by their own clocks
	}
	region, err := profile.ResidentsOf(h.Profiles).RegionOf(ctx, request.App, request.User)
	if err != nil {
		return err
	}
	if !request.Withdrawn {
		err := h.Store.Usage.ForgetHotUser(ctx, request.App, region, request.User, now, until)
		if err != nil {
			return err
		}
	}
	state, known := states[request.User]
	view := of.Judge(consent.Kept).View(state.Consents)
	return h.Store.Recent.ForgetRecent(ctx, request.App, request.User, func(e store.RecentEvent) bool {
		return !known || state.Excludes(e.Type, e.Time, e.Receipt) || !view.Keeps(e.Type, e.Name, e.Time, e.Receipt)
	})
}
