package render

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
)

// Reasons writes why each kind of events and each facet has its score in a suggestion.
func Reasons(out io.Writer, reasons []api.SuggestionReason) error {
	return cli.Table(out, "SCORE\tEVENT OR FACET\tWHY", reasons, func(r api.SuggestionReason) []any {
		score := "-"
		if r.Score > 0 {
			score = strconv.Itoa(r.Score)
		}
		name := r.FacetName
		if r.EventType != "" {
			name = r.EventType + " " + strconv.Quote(r.EventName)
		}
		return []any{score, cli.Printable(name), cli.Printable(r.Reason)}
	})
}

// BandCommands writes the commands that give indexes numeric bands, nothing for those without.
func BandCommands(out io.Writer, bands map[string]map[string][]float64) error {
	for _, index := range slices.Sorted(maps.Keys(bands)) {
		if len(bands[index]) == 0 {
			continue
		}
		line := "affinity index bands " + cli.ShellWord(index)
		for _, facet := range slices.Sorted(maps.Keys(bands[index])) {
			var limits []string
			for _, n := range bands[index][facet] {
				limits = append(limits, strconv.FormatFloat(n, 'f', -1, 64))
			}
			line += " " + cli.ShellWord(facet+"="+strings.Join(limits, ","))
		}
		if _, err := fmt.Fprintf(out, "prices count as bands with: %s\n", line); err != nil {
			return err
		}
	}
	return nil
}
