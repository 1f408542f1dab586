package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// explainAnswer is what GET /1/explain/{userToken} answers.
type explainAnswer struct {
	UserToken       string         `json:"userToken"`
	AsOf            time.Time      `json:"asOf"`
	Known           bool           `json:"known"`
	StrategyVersion int64          `json:"strategyVersion"`
	RetentionDays   int            `json:"retentionDays"`
	DeletedUntil    *time.Time     `json:"deletedUntil"`
	Events          map[string]int `json:"events"`
	FirstEventAt    *time.Time     `json:"firstEventAt"`
	LastEventAt     *time.Time     `json:"lastEventAt"`
	Reasons         []string       `json:"reasons"`

	Facet         string               `json:"facet"`
	Value         string               `json:"value"`
	Score         *float64             `json:"score"` // nil: none was asked for
	Contributions []contributionAnswer `json:"contributions"`
}

// contributionAnswer is one event's part of a score, or what Events earlier ones came to.
type contributionAnswer struct {
	Events       int       `json:"events"`
	From         time.Time `json:"from"`
	To           time.Time `json:"to"`
	Time         time.Time `json:"time"`
	Type         string    `json:"type"`
	Name         string    `json:"name"`
	Index        string    `json:"index"`
	ObjectIDs    []string  `json:"objectIDs"`
	Values       []string  `json:"values"`
	Weight       int       `json:"weight"`
	Count        int       `json:"count"`
	AgeDays      float64   `json:"ageDays"`
	Decay        float64   `json:"decay"`
	Contribution float64   `json:"contribution"`
}

// accountedFor are the categories that add up to the accepted events, in the order that an event is put into the first that holds.
var accountedFor = []struct{ key, text string }{
	{"deleted", "deleted with the user"},
	{"outsideWindow", "older than the retention"},
	{"ahead", "later than now"},
	{"notInStrategy", "not scored by the strategy"},
	{"withoutFilters", "without filters"},
	{"counted", "counted"},
}

type explainOptions struct {
	facet, value string
	limit        int
	json         bool
}

func (t *tool) explainCommand() *cobra.Command {
	o := explainOptions{}
	cmd := &cobra.Command{
		Use:   "explain USER",
		Short: "Say why a profile is as it is, or what a score is made of",
		Long: "Say why the profile of a user token is as it is, or empty: what became of each of his events, and why. With --facet and --value,\n" +
			"the events that this score is made of. The key needs the right recommendation.",
		Example: "  affinity explain ann\n  affinity explain ann --facet color --value Red",
		Args:    cli.Args("USER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case args[0] == "":
				return cli.Usagef("USER must not be empty")
			case (o.facet == "") != (o.value == ""):
				return cli.Usagef("--facet and --value must be given both, or neither")
			case o.limit < 1:
				return cli.Usagef("--limit %d: must be 1 or more", o.limit)
			}
			if o.json && !cmd.Flags().Changed("limit") {
				o.limit = 0 // as many as the engine tells by itself
			}
			return t.explain(cmd.Context(), args[0], o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.facet, "facet", "", "facet of a score")
	flags.StringVar(&o.value, "value", "", "value of a score")
	flags.IntVar(&o.limit, "limit", 20, "how many of the latest events to list of a score")
	flags.BoolVar(&o.json, "json", false, "print the engine's answer as it is")
	return cmd
}

func (t *tool) explain(ctx context.Context, user string, o explainOptions) error {
	c, err := t.client()
	if err != nil {
		return err
	}
	query := url.Values{}
	if o.limit > 0 {
		query.Set("limit", strconv.Itoa(o.limit))
	}
	if o.facet != "" {
		query.Set("facet", o.facet)
		query.Set("value", o.value)
	}
	body, err := c.do(ctx, http.MethodGet, "/1/explain/"+url.PathEscape(user)+"?"+query.Encode(), nil)
	if err != nil {
		return fmt.Errorf("explain %s: %w", cli.Printable(user), err)
	}
	if o.json {
		_, err := fmt.Fprintf(t.out, "%s\n", bytes.TrimSpace(body))
		return err
	}
	var x explainAnswer
	if err := json.Unmarshal(body, &x); err != nil {
		return fmt.Errorf("explain %s, whose explanation is not what an Affinity engine sends: %w", cli.Printable(user), err)
	}
	return drawExplanation(t.out, x, newPalette(cli.Colored(t.out)))
}

// drawExplanation writes an explanation for people.
func drawExplanation(out io.Writer, x explainAnswer, colors *palette) error {
	var text bytes.Buffer
	retention := fmt.Sprintf("retention %d days", x.RetentionDays)
	if x.RetentionDays == 0 {
		retention = "no retention limit"
	}
	fmt.Fprintf(&text, "%s  strategy version %d  %s  as of %s\n", colors.bold(cli.Printable(x.UserToken)), x.StrategyVersion, retention, second(x.AsOf))
	for _, r := range x.Reasons {
		fmt.Fprintf(&text, "  - %s\n", cli.Printable(r))
	}
	if x.FirstEventAt != nil && x.LastEventAt != nil {
		fmt.Fprintf(&text, "  %d events from %s to %s\n", x.Events["accepted"], second(*x.FirstEventAt), second(*x.LastEventAt))
		for _, c := range accountedFor {
			if n := x.Events[c.key]; n > 0 {
				fmt.Fprintf(&text, "  %8d %s\n", n, c.text)
			}
		}
	}
	if x.Score != nil {
		if err := drawScore(&text, x, colors); err != nil {
			return err
		}
	}
	_, err := out.Write(text.Bytes())
	return err
}

func drawScore(text *bytes.Buffer, x explainAnswer, colors *palette) error {
	fmt.Fprintf(text, "\n%s scores %s\n", colors.bold(cli.Printable(x.Facet+":"+x.Value)), number(*x.Score))
	if len(x.Contributions) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  time\tevent\tobjects\tweight\tcount\tdecay\tcontribution")
	for _, c := range x.Contributions {
		if c.Events > 0 {
			fmt.Fprintf(table, "  %s\t%d events until %s\t\t\t\t\t%s\n", second(c.From), c.Events, second(c.To), number(c.Contribution))
			continue
		}
		fmt.Fprintf(table, "  %s\t%s %s\t%s\t%d\t%d\t%.4g\t%s\n", second(c.Time), cli.Printable(c.Type), cli.Printable(strconv.Quote(c.Name)),
			c.objects(), c.Weight, c.Count, c.Decay, number(c.Contribution))
	}
	return table.Flush()
}

// objects are the objects of an event, and which values of theirs count as the one asked for.
func (c contributionAnswer) objects() string {
	text := c.Index
	if len(c.ObjectIDs) > 0 {
		text += ": " + strings.Join(c.ObjectIDs, ", ")
	}
	if len(c.Values) > 0 {
		text += " (" + strings.Join(c.Values, ", ") + ")"
	}
	return cli.Printable(text)
}

func second(t time.Time) string { return t.UTC().Format(time.RFC3339) }
