package transfer

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// firstStrategy is what an import does about an app without a strategy.
type firstStrategy struct {
	missing bool  // the app has none, and the import brings none
	wanted  bool  // to be suggested and set
	before  int64 // events that the engine had counted
}

// firstStrategy asks whether the app has a strategy, and if not, the person whether to set one.
func (o *importOptions) firstStrategy(ctx context.Context, t *command.Tool,
	c *client.Client) (first firstStrategy, err error) {
	if c == nil || o.strategy != "" {
		return first, nil
	}
	versions, err := t.Patient(c).Strategies().Versions(ctx)
	switch {
	case err != nil && o.suggest:
		return first, fmt.Errorf("ask whether the app has a strategy: %w", err)
	case err != nil:
		return first, nil // the key may not ask, and the import needs no strategy
	case len(versions.Versions) > 0:
		if o.suggest {
			fmt.Fprintln(t.Err, "the app has a strategy: --suggest leaves it as it is")
		}
		return first, nil
	}
	first.missing, first.wanted = true, o.suggest
	if !o.suggest && o.events != "-" && o.objects != "-" && cli.IsTerminalInput(t.In) && cli.IsTerminal(t.Err) {
		fmt.Fprintf(t.Err, "app %s has no strategy, so its profiles would be empty. Set one by what the import "+
			"brings? [Y/n] ", cli.Printable(t.App))
		answer, err := bufio.NewReader(t.In).ReadString('\n')
		answer = strings.ToLower(strings.TrimSpace(answer))
		first.wanted = err == nil && (answer == "" || answer == "y" || answer == "yes")
	}
	if first.wanted {
		first.before, err = command.SeenEvents(ctx, t.Patient(c), api.MaxSeenDays)
	}
	return first, err
}

// set sets the strategy if it is wanted, after so many events were accepted.
func (f firstStrategy) set(ctx context.Context, t *command.Tool, c *client.Client, accepted int) error {
	switch {
	case !f.missing:
		return nil
	case !f.wanted:
		fmt.Fprintln(t.Err, "the app has no strategy, so its profiles are empty: `affinity strategy suggest --set` "+
			"sets one by what it has seen")
		return nil
	}
	s, err := t.Suggest(ctx, t.Patient(c), api.MaxSeenDays, f.before+int64(accepted))
	if err == nil {
		err = t.SetSuggestion(ctx, t.Patient(c), s)
	}
	if err != nil {
		return fmt.Errorf("%w\nthe events are in; `affinity strategy set FILE` sets a strategy", err)
	}
	fmt.Fprintln(t.Err, "the strategy is set: `affinity strategy get` prints it")
	return nil
}
