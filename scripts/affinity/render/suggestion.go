package render

import (
	"fmt"
	"io"
	"strconv"

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

// BandCommands writes the commands that give indexes the numeric bands of a suggestion.
func BandCommands(out io.Writer, s api.StrategySuggestion) error {
	for _, arguments := range s.BandArguments() {
		line := "affinity index bands"
		for _, argument := range arguments {
			line += " " + cli.ShellWord(argument)
		}
		if _, err := fmt.Fprintf(out, "prices count as bands with: %s\n", line); err != nil {
			return err
		}
	}
	return nil
}
