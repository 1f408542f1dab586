package judge

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/judge/rankers"
	"github.com/affinityengine/affinity/shared/judge/suggest"
)

type rankersOptions struct {
	logFiles
	judgeFlags
	strategies []string
}

// Rankers returns the command that compares rankings with the simple methods of the field.
func Rankers(t *command.Tool) *cobra.Command {
	o := rankersOptions{}
	cmd := &cobra.Command{
		Use:   "rankers DATA | rankers --objects FILE EVENTS...",
		Short: "Judge strategies beside the simple methods that rankers are measured against",
		Long: "Judge the ranking of each strategy, and beside it sequential rules, neighbours of items and of\n" +
			"sessions, EASE and a matrix factorization, all on the same cases: those of `affinity backtest` in\n" +
			"the whole catalog. The methods learn from all users up to the cut. The tuning cases (70 % of the\n" +
			"users) choose each method's parameters; the column untouched is of the other users, and the gain\n" +
			"there is that over the first strategy, with its paired 95 % interval. Recent best sellers and what\n" +
			"others turned to next are rows of `affinity backtest`.\n" +
			"\n" +
			"DATA is a folder with events, objects and strategy files, which begin with these words. Otherwise\n" +
			"the files are those of `affinity import`. Without --strategy the strategy is the one that\n" +
			"`affinity strategy suggest` would suggest. The package shared/judge/rankers has the formulas.",
		Example: "  affinity bench rankers ../shared/data/clickstream\n" +
			"  affinity bench rankers --index shoes --objects objects.ndjson.gz --strategy strategy.json events.ndjson.gz",
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := o.folder(cmd, args)
			if err != nil {
				return err
			}
			if err := o.logFiles.parse(cmd, args); err != nil {
				return err
			}
			if err := o.judgeFlags.parse(cmd); err != nil {
				return err
			}
			o.Within = backtest.None
			return runRankers(cmd.Context(), t, o)
		},
	}
	o.logFiles.flags(cmd)
	o.judgeFlags.flags(cmd, "judge")
	for _, name := range []string{"within", "baseline"} {
		_ = cmd.Flags().MarkHidden(name) // both are defined
	}
	cmd.Flags().StringArrayVar(&o.strategies, "strategy", nil, "strategy to judge: a JSON file; give it again for more")
	t.JSONFlag(cmd, command.JSONDocument)
	return cmd
}

// folder takes the files of a folder, if it is the only argument.
func (o *rankersOptions) folder(cmd *cobra.Command, args []string) ([]string, error) {
	if len(args) != 1 || o.objects != "" {
		return args, nil
	}
	if info, err := os.Stat(args[0]); err != nil || !info.IsDir() {
		return nil, cli.Usagef("%s is no folder of data: name one, or the catalog with --objects", args[0])
	}
	found := map[string][]string{}
	for _, name := range []string{"events", "objects", "strategy"} {
		files, err := filepath.Glob(filepath.Join(escapeGlob(args[0]), name+"*"))
		if err != nil {
			return nil, fmt.Errorf("look for %s in %s: %w", name, args[0], err)
		}
		found[name] = files
	}
	if len(found["events"]) == 0 || len(found["objects"]) != 1 {
		return nil, cli.Usagef("%s has %s that begin with events and %d with objects: it needs at least one and exactly one",
			args[0], cli.Count(len(found["events"]), "file"), len(found["objects"]))
	}
	if len(o.strategies) == 0 {
		o.strategies = found["strategy"]
	}
	if err := cmd.Flags().Set("objects", found["objects"][0]); err != nil {
		return nil, fmt.Errorf("take the objects of %s: %w", args[0], err)
	}
	return found["events"], nil
}

// escapeGlob returns a path as a pattern of itself.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

func runRankers(ctx context.Context, t *command.Tool, o rankersOptions) error {
	given, err := readGiven(t, o.strategies)
	if err != nil {
		return err
	}
	objects := &suggest.Objects{}
	if len(given) == 0 {
		o.prepare = func(all []backtest.Object) {
			for _, object := range all {
				objects.Add(object.Filters)
			}
			inBands(all, objects.Bands())
		}
	}
	log, err := o.read(ctx, t, backtest.Dates(given))
	if err != nil {
		return err
	}
	if len(given) == 0 {
		s, err := begin(t, log, objects)
		if err != nil {
			return err
		}
		given = []backtest.Given{{Name: "suggested strategy", Strategy: s}}
	}
	cases, err := log.Cases(ctx, given[0].Strategy, o.Options)
	if err != nil {
		return err
	}
	bar := cli.NewProgress(t.Err)
	rows, err := rankers.Compare(ctx, cases, given, func(what string, done float64) { bar.Set("judging "+what, done) })
	bar.Finish()
	if err != nil {
		return err
	}
	return o.judged(printRankers(t, cases, rows))
}

// rankersRow is a row of the answer.
type rankersRow struct {
	Name       string   `json:"name"`
	Parameters string   `json:"parameters,omitempty"`
	NDCG       *float64 `json:"ndcg,omitempty"` // of all cases, as the next two
	NDCGLow    float64  `json:"ndcgLow,omitempty"`
	NDCGHigh   float64  `json:"ndcgHigh,omitempty"`
	HitRate    float64  `json:"hitRate,omitempty"`
	Untouched  *float64 `json:"untouched,omitempty"` // nDCG of the cases that chose no parameters
	// Over the first row, on these cases; absent in it.
	Gain    *float64 `json:"gain,omitempty"`
	Low     float64  `json:"gainLow,omitempty"`
	High    float64  `json:"gainHigh,omitempty"`
	Missing string   `json:"missing,omitempty"` // why the method cannot rank
}

func printRankers(t *command.Tool, cases *backtest.Cases, rows []rankers.Row) error {
	answer := struct {
		Cases      int          `json:"cases"`
		Candidates int          `json:"candidates"`
		Rankings   []rankersRow `json:"rankings"`
	}{Cases: cases.Len(), Candidates: cases.Candidates()}
	for i, r := range rows {
		row := rankersRow{Name: r.Name, Parameters: r.Parameters, Missing: r.Missing}
		if r.All != nil {
			row.NDCG, row.Untouched, row.HitRate = &r.All.NDCG, &r.Untouched.NDCG, r.All.HitRate
			row.NDCGLow, row.NDCGHigh = r.All.Interval()
			if i > 0 {
				g := r.Untouched.Over(rows[0].Untouched)
				row.Gain, row.Low, row.High = &g.Difference, g.Low, g.High
			}
		}
		answer.Rankings = append(answer.Rankings, row)
	}
	if t.JSON {
		return cli.PrintJSON(t.Out, answer)
	}
	fmt.Fprintf(t.Out, "%s, %s; higher is better\n", cli.Count(answer.Cases, "case"),
		cli.Count(answer.Candidates, "object"))
	header := fmt.Sprintf("ranking\tparameters\tnDCG@%d\tuntouched\tgain there over the first", cases.At())
	return cli.Table(t.Out, header,
		answer.Rankings, func(r rankersRow) []any {
			if r.NDCG == nil {
				return []any{r.Name, r.Missing, "-", "-", "-"}
			}
			gain := ""
			if r.Gain != nil {
				gain = fmt.Sprintf("%+.4f (%+.4f..%+.4f)", *r.Gain, r.Low, r.High)
			}
			return []any{r.Name, r.Parameters, fmt.Sprintf("%.4f", *r.NDCG), fmt.Sprintf("%.4f", *r.Untouched), gain}
		})
}
