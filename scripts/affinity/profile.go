package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// profileAnswer is what GET /1/profiles/{userToken} answers.
type profileAnswer struct {
	UserToken       string           `json:"userToken"`
	LastEventAt     time.Time        `json:"lastEventAt"`
	AsOf            time.Time        `json:"asOf"`
	StrategyVersion int64            `json:"strategyVersion"`
	Source          string           `json:"source"`
	Total           int              `json:"total"`
	Affinities      []affinityAnswer `json:"affinities"`
}

type affinityAnswer struct {
	Facet    string             `json:"facet"`
	Operator string             `json:"operator"`
	Value    string             `json:"value"`
	Score    float64            `json:"score"`
	Scores   map[string]float64 `json:"scores"` // by half-life in days
}

type profileOptions struct {
	limit, halfLife int
	json            bool
}

func (t *tool) profileCommand() *cobra.Command {
	o := profileOptions{}
	cmd := &cobra.Command{
		Use:     "profile USER",
		Short:   "Show what a user likes, the strongest first",
		Long:    "Show the profile of a user token: each affinity with a bar as long as its score. The key needs the right recommendation.",
		Example: "  affinity profile ann --limit 10\n  affinity profile ann --half-life 30 --json",
		Args:    cli.Args("USER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.limit < 1 {
				return cli.Usagef("--limit %d: must be 1 or more", o.limit)
			}
			if cmd.Flags().Changed("half-life") && o.halfLife < 1 {
				return cli.Usagef("--half-life %d: must be 1 day or more", o.halfLife)
			}
			if args[0] == "" {
				return cli.Usagef("USER must not be empty")
			}
			return t.showProfile(cmd.Context(), args[0], o)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.limit, "limit", 20, "how many affinities to show")
	flags.IntVar(&o.halfLife, "half-life", 0, "score under this half-life of the strategy, in days (default: its first)")
	flags.BoolVar(&o.json, "json", false, "print the engine's answer as it is")
	return cmd
}

func (t *tool) showProfile(ctx context.Context, user string, o profileOptions) error {
	c, err := t.client()
	if err != nil {
		return err
	}
	body, err := c.do(ctx, http.MethodGet, profilePath(user, o), nil)
	if statusOf(err) == http.StatusNotFound {
		return fmt.Errorf("no profile of %s in app %s: the engine holds no event of this user, or all of them have left the retention window or "+
			"were deleted (%s)", cli.Printable(user), c.app, answerOf(err))
	}
	if err != nil {
		return fmt.Errorf("read the profile of %s: %w", cli.Printable(user), err)
	}
	if o.json {
		_, err := fmt.Fprintf(t.out, "%s\n", bytes.TrimSpace(body))
		return err
	}
	var p profileAnswer
	if err := json.Unmarshal(body, &p); err != nil {
		return fmt.Errorf("read the profile of %s, which is not what an Affinity engine sends: %w", cli.Printable(user), err)
	}
	return drawProfile(t.out, p, o.halfLife, newPalette(cli.Colored(t.out)))
}

func profilePath(user string, o profileOptions) string {
	query := url.Values{"limit": {strconv.Itoa(o.limit)}}
	if o.halfLife > 0 {
		query.Set("halfLife", strconv.Itoa(o.halfLife))
	}
	return "/1/profiles/" + url.PathEscape(user) + "?" + query.Encode()
}
