package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// countsWithin is how long the engine may take until its counts have the events that it has
// accepted: it writes them every 5 seconds.
const countsWithin = 15 * time.Second

// SeenEvents returns how many events of some days the engine has counted.
func SeenEvents(ctx context.Context, c *client.Client, days int) (n int64, err error) {
	seen, err := c.Events().Seen(ctx, days)
	for _, e := range seen.Events {
		n += e.Count
	}
	return n, err
}

// Suggest asks the engine for a first strategy by what it has seen in some days, and prints why it
// is as it is. It waits a while until the engine has counted so many events.
func (t *Tool) Suggest(ctx context.Context, c *client.Client, days int, events int64) (api.StrategySuggestion, error) {
	printed := false
	// The count may stay lower, because the engine counts only so many names. What it has is enough then.
	_ = cli.Poll(ctx, countsWithin, func() (bool, error) {
		n, err := SeenEvents(ctx, c, days)
		if err == nil && n < events && !printed {
			fmt.Fprintln(t.Err, "waiting until the engine has counted the events, for some seconds")
			printed = true
		}
		return err != nil || n >= events, ctx.Err()
	})
	s, err := c.Strategies().Suggestion(ctx, days)
	if err != nil {
		return s, fmt.Errorf("suggest a strategy: %w", err)
	}
	fmt.Fprintf(t.Err, "by the events of the last %s and %s:\n", cli.Count(s.Days, "day"), cli.Count(s.Objects, "object"))
	return s, render.Reasons(t.Err, s.Reasons)
}

// SetSuggestion sets a suggested strategy, and the numeric bands that it needs.
func (t *Tool) SetSuggestion(ctx context.Context, c *client.Client, s api.StrategySuggestion) error {
	for _, index := range slices.Sorted(maps.Keys(s.NumericBands)) {
		settings, err := c.Catalog().Settings(ctx, index)
		if err != nil {
			return fmt.Errorf("read the settings of the index %s: %w", cli.Printable(index), err)
		}
		bands := maps.Clone(settings.NumericBands)
		if bands == nil {
			bands = map[string][]float64{}
		}
		maps.Copy(bands, s.NumericBands[index])
		if _, err := c.Catalog().SetSettings(ctx, index, api.Settings{NumericBands: bands}); err != nil {
			return fmt.Errorf("set the numeric bands of the index %s: %w", cli.Printable(index), err)
		}
	}
	err := t.SetStrategy(ctx, func(ctx context.Context) error { return c.Strategies().Set(ctx, s.Strategy) })
	if err != nil {
		return fmt.Errorf("set the strategy: %w", err)
	}
	return nil
}
