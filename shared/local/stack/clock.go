package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/affinityengine/affinity/shared/event"
)

// clockFile holds the latest time at which the data folder was in use, by the clock of that
// process.
const clockFile = "clock"

// clockEvery is how often the file is written.
const clockEvery = time.Minute

// checkClock warns of a data folder that was in use at a time which is ahead of this clock, and
// ends the deletions and opt-outs of that time: what is received from now on counts. From
// then on it keeps the time.
func (s *Stack) checkClock(ctx context.Context, b *Backends) error {
	latest, err := s.latestClock()
	if err != nil {
		return err
	}
	if now := b.Now(); latest.After(now.Add(event.MaxAhead)) {
		ended, err := settleAll(ctx, b)
		if err != nil {
			return err
		}
		b.Log.LogAttrs(ctx, slog.LevelWarn, "the data folder was used by a clock ahead of this one: its events of "+
			"later times do not count yet",
			slog.Time("until", latest), slog.Time("now", now), slog.Int("deletionsEnded", ended))
	}
	keep := func() error {
		latest = later(latest, b.Now())
		return s.disk.WriteFile(clockFile, []byte(latest.UTC().Format(time.RFC3339)+"\n"))
	}
	if err := keep(); err != nil {
		return err
	}
	ticker, ended, done := time.NewTicker(clockEvery), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ticker.C:
				if err := keep(); err != nil {
					b.Log.LogAttrs(context.Background(), slog.LevelWarn, "the time is not kept in the data folder",
						slog.Any("error", err))
				}
			case <-ended:
				return
			}
		}
	}()
	s.onClose(func() error {
		ticker.Stop()
		close(ended)
		<-done
		return keep()
	})
	return nil
}

// unusedAtMost is after how long without a use of the folder a clock is doubted: one that is too far ahead lets events
// expire.
const unusedAtMost = 31 * 24 * time.Hour

// ClockFault returns why a time is doubted: the data folder was last used later, or more than unusedAtMost before.
func ClockFault(dir string, now time.Time) error {
	latest, err := parseClock(os.ReadFile(filepath.Join(dir, clockFile)))
	past := now.Sub(latest)
	if err != nil || latest.IsZero() || past >= -event.MaxAhead && past <= unusedAtMost {
		return err
	}
	return fmt.Errorf("the clock of this machine says %s, and the data folder was last used at %s: set the clock, such "+
		"as with timedatectl set-ntp true, or start with --accept-clock if it is right",
		now.UTC().Format(time.RFC3339), latest.Format(time.RFC3339))
}

// latestClock reads the file; the zero time if there is none.
func (s *Stack) latestClock() (time.Time, error) { return parseClock(s.disk.ReadFile(clockFile)) }

func parseClock(text []byte, err error) (time.Time, error) {
	if errors.Is(err, os.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	at, err := time.Parse(time.RFC3339+"\n", string(text))
	if err != nil {
		return at, fmt.Errorf("the file %s of the data folder is damaged, remove it: %w", clockFile, err)
	}
	return at, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// settleAll settles the deletions of all apps, and returns how many.
func settleAll(ctx context.Context, b *Backends) (int, error) {
	ids, err := b.Config.Apps(ctx)
	all := 0
	for _, id := range ids {
		app, appErr := b.Config.App(ctx, id)
		if err = errors.Join(err, appErr); err != nil {
			return all, err
		}
		n, err := b.Profiles.Settle(ctx, app)
		if all += n; err != nil {
			return all, fmt.Errorf("end the deletions of %s that are ahead of this clock: %w", id, err)
		}
	}
	return all, err
}
