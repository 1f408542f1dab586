package render

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
)

// maxReasons is how many parts of a feature a reason names.
const maxReasons = 3

// Ranking writes an order: a line about the user, then a line per object with
// its place, its score and the reason. In detail the reason has the numbers. The
// answer must have features.
func Ranking(out io.Writer, r api.RankAnswer, user string, detailed bool, colors *Palette) error {
	var text bytes.Buffer
	by := "no published strategy" // a draft, or none was ever set
	if r.StrategyVersion > 0 {
		by = fmt.Sprintf("strategy version %d", r.StrategyVersion) + inArm(r.Experiment)
	}
	fmt.Fprintf(&text, "%s  %s  %s  %d ms\n", colors.Bold(cli.Printable(user)), by, statistics(r), r.Took)
	switch {
	case r.Fallback != nil && *r.Fallback == api.FallbackHoldout:
		fmt.Fprintln(&text, "  this user is held out: the order is that of a user without events")
	case r.Fallback != nil:
		fmt.Fprintln(&text, "  no event of this user counts: the order is the same for all such users")
	}
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for i, item := range r.Items {
		why := Reason(item)
		if detailed {
			why = terms(item)
		}
		fmt.Fprintf(table, "  %*d\t%.3f\t%s\t%s\n", len(strconv.Itoa(len(r.Items))), i+1, item.Score,
			cli.Printable(item.ObjectID), cli.Printable(why))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := out.Write(text.Bytes())
	return err
}

// inArm says which arm of an experiment a user is in.
func inArm(in *api.InArm) string {
	if in == nil {
		return ""
	}
	return fmt.Sprintf(", arm %s of experiment %s", cli.Printable(in.Arm), cli.Printable(in.Name))
}

// Recommendation writes what a model recommends: a line per place with what brought the
// object in and why it stands there. user is empty for a guest.
func Recommendation(out io.Writer, r api.RecommendAnswer, user string, detailed bool, colors *Palette) error {
	var text bytes.Buffer
	who := "a guest"
	if user != "" {
		who = user
	}
	fmt.Fprintf(&text, "%s for %s  %s  %d ms\n", r.Model, colors.Bold(cli.Printable(who)),
		statistics(api.RankAnswer{CrowdAsOf: r.CrowdAsOf}), r.Took)
	for _, of := range r.Given {
		if detailed {
			fmt.Fprintf(&text, "  for %s: %s\n", cli.Printable(of.ObjectID), cli.Count(of.Events, "event"))
		}
	}
	if len(r.Items) == 0 {
		fmt.Fprintln(&text, "  nothing: the index holds no object that meets the request, or has another name")
	}
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for i, item := range r.Items {
		ranked := api.RankedItem{ObjectID: item.ObjectID, Score: item.Score, Features: item.Features}
		why := terms(ranked)
		if !detailed { // the source says why it is relevant
			ranked.Features = slices.DeleteFunc(slices.Clone(item.Features), func(f api.RankFeature) bool {
				return f.Name == api.FieldRelevancy
			})
			why = Reason(ranked)
		}
		fmt.Fprintf(table, "  %*d\t%.3f\t%s\t%s\t%s\n", len(strconv.Itoa(len(r.Items))), i+1, item.Score,
			cli.Printable(item.ObjectID), item.Source, cli.Printable(why))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := out.Write(text.Bytes())
	return err
}

// Reordered writes an order beside the one that it replaces: a line per place,
// with the object that was there, the object that is there now, its earlier place
// and the main reason. names are of the objects.
func Reordered(out io.Writer, r api.RankAnswer, before []string, names map[string]string) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "  \tthe page\tfor this person\twas\twhy\n")
	for i, item := range r.Items {
		fmt.Fprintf(table, "  %d\t%s\t%s\t%d\t%s\n", i+1, cli.Printable(names[before[i]]),
			cli.Printable(names[item.ObjectID]),
			slices.Index(before, item.ObjectID)+1, cli.Printable(mainReason(item)))
	}
	return table.Flush()
}

func statistics(r api.RankAnswer) string {
	if r.CrowdAsOf == nil {
		return "no statistics of the index"
	}
	return "statistics as of " + timestamp(*r.CrowdAsOf)
}

// mainReason is the reason for the feature that adds the most, with its two
// largest parts.
func mainReason(item api.RankedItem) string {
	if len(item.Features) == 0 {
		return nothing
	}
	most := slices.MaxFunc(item.Features, func(a, b api.RankFeature) int { return cmp.Compare(a.Value, b.Value) })
	most.Parts = most.Parts[:min(2, len(most.Parts))]
	return reason(most)
}

// nothing is the reason of an item without features.
const nothing = "nothing speaks for it"

// Reason says in words why an item has its score, the feature that adds the most
// first.
func Reason(item api.RankedItem) string {
	features := slices.Clone(item.Features)
	slices.SortStableFunc(features, func(a, b api.RankFeature) int { return cmp.Compare(b.Value, a.Value) })
	var reasons []string
	for _, f := range features {
		reasons = append(reasons, reason(f))
	}
	if len(reasons) == 0 {
		return nothing
	}
	return strings.Join(reasons, "; ")
}

func reason(f api.RankFeature) string {
	parts := partNames(f)
	switch f.Name {
	case "affinity":
		return "likes " + parts
	case "session":
		return "lately " + parts
	case "pairs":
		return "others went from " + parts + " to it"
	case "sequence":
		return "people who looked at " + parts + " went on to it"
	case "neighbours":
		return "people who looked at " + parts + " looked at it too"
	case "popularity":
		return "popular"
	case "freshness":
		return "new"
	case "relevancy":
		return "matches the search"
	case "seen":
		return "seen before"
	case "diversity":
		if parts == "" {
			return "behind the places that differ"
		}
		return "too like " + parts
	}
	return f.Name
}

// partNames names the largest parts of a feature.
func partNames(f api.RankFeature) string {
	var names []string
	for _, p := range f.Parts[:min(maxReasons, len(f.Parts))] {
		names = append(names, p.Name)
	}
	if more := len(f.Parts) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// terms are the features with their values and parts.
func terms(item api.RankedItem) string {
	var all []string
	for _, f := range item.Features {
		term := fmt.Sprintf("%s %.3f", f.Name, f.Value)
		var parts []string
		for _, p := range f.Parts {
			parts = append(parts, fmt.Sprintf("%s %.3f", p.Name, p.Value))
		}
		if len(parts) > 0 {
			term += " (" + strings.Join(parts, ", ") + ")"
		}
		all = append(all, term)
	}
	return strings.Join(all, " + ")
}
