package stack

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/googleapis/gax-go/v2"
)

const (
	// nightHour is when the nightly round begins, UTC.
	nightHour = 3
	// A call that fails is retried a few times.
	schedulerTries = 5
	schedulerPause = time.Minute
)

// scheduler calls a function once a day, at nightHour of its clock.
type scheduler struct {
	now  func() time.Time
	call func(context.Context) error
	log  *slog.Logger
}

// run calls until the context ends.
func (s scheduler) run(ctx context.Context) {
	for gax.Sleep(ctx, nextNight(s.now()).Sub(s.now())) == nil {
		for try := 1; ; try++ {
			err := s.call(ctx)
			if err == nil || ctx.Err() != nil {
				break
			}
			s.log.LogAttrs(ctx, slog.LevelError, "nightly round failed", slog.Int("try", try), slog.Any("error", err))
			if try == schedulerTries || gax.Sleep(ctx, schedulerPause) != nil {
				break
			}
		}
	}
}

// nextNight is when the next nightly round begins.
func nextNight(now time.Time) time.Time {
	year, month, day := now.UTC().Date()
	night := time.Date(year, month, day, nightHour, 0, 0, 0, time.UTC)
	if !night.After(now) {
		night = night.AddDate(0, 0, 1)
	}
	return night
}

// startScheduler calls the worker's nightly round every night.
func (s *Stack) startScheduler(url string, header http.Header) {
	s.goOn(scheduler{now: s.Backends.Now, log: s.Backends.Log,
		call: func(ctx context.Context) error { return post(ctx, url, header) }}.run)
}

func post(ctx context.Context, url string, header http.Header) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	r.Header = header.Clone()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	if err := answer.Body.Close(); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("POST %s: %s", url, answer.Status)
	}
	return nil
}
