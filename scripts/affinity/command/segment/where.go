package segment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// whereHelp describes conditions for the help of commands.
const whereHelp = "A condition is a file (- is standard input), or flags. Each --where must hold, and no --without may:\n\n" +
	"  'brand:Nike'             the user scores brand:Nike above 0\n" +
	"  'brand:Nike > 500'       above 500, under the strategy's first half-life\n" +
	"  'brand:Nike > 500 @30'   above 500, under its half-life of 30 days\n\n" +
	"A file says more, such as: {\"or\":[{\"filter\":\"brand:Nike\",\"above\":500},{\"and\":[{\"filter\":\"brand:Puma\"},\n" +
	"{\"not\":{\"filter\":\"sale:yes\",\"halfLife\":30,\"above\":10}}]}]}"

// whereFlags are the flags of a condition.
type whereFlags struct{ where, without []string }

func (f *whereFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.where, "where", nil,
		"a filter that holds, such as 'brand:Nike > 500 @30'; repeat for several")
	cmd.Flags().StringArrayVar(&f.without, "without", nil, "a filter that does not hold; repeat for several")
}

// condition returns the condition of a file or of the flags.
func (f *whereFlags) condition(t *command.Tool, files []string) (api.SegmentCondition, error) {
	given := len(f.where) + len(f.without)
	switch {
	case len(files) > 0 && given > 0:
		return api.SegmentCondition{}, cli.Usagef("give a file, or --where and --without, not both")
	case len(files) > 0:
		return readCondition(t, files[0])
	case len(f.where) == 0:
		return api.SegmentCondition{}, cli.Usagef("--where is required, or a file with the condition")
	}
	var all []api.SegmentCondition
	for _, text := range f.where {
		one, err := parseFilter(text)
		if err != nil {
			return api.SegmentCondition{}, cli.Usagef("--where %v", err)
		}
		all = append(all, one)
	}
	for _, text := range f.without {
		one, err := parseFilter(text)
		if err != nil {
			return api.SegmentCondition{}, cli.Usagef("--without %v", err)
		}
		all = append(all, api.SegmentCondition{Not: &one})
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return api.SegmentCondition{And: all}, nil
}

// readCondition reads a condition, or the body of a query: {"where":...}.
func readCondition(t *command.Tool, path string) (api.SegmentCondition, error) {
	var condition api.SegmentCondition
	text, err := t.ReadFile(path)
	if err != nil {
		return condition, err
	}
	var body struct {
		Where json.RawMessage `json:"where"`
	}
	if json.Unmarshal(text, &body) == nil && body.Where != nil {
		text = body.Where
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&condition); err != nil {
		return condition, fmt.Errorf("%s is not a condition: %w", cli.Printable(path), err)
	}
	return condition, nil
}

// parseFilter parses facet:value, > and a number, @ and a half-life. Only the first is
// required, and a value may contain the signs of the others.
func parseFilter(text string) (api.SegmentCondition, error) {
	var c api.SegmentCondition
	rest := strings.TrimSpace(text)
	if before, after, ok := cutLast(rest, " @"); ok {
		if h, err := strategy.ParseHalfLife(after); err == nil {
			c.HalfLife, rest = h, strings.TrimSpace(before)
		}
	}
	if before, after, ok := cutLast(rest, ">"); ok {
		above, err := strconv.ParseFloat(strings.TrimSpace(after), 64)
		switch {
		case err == nil && above < 0:
			return c, fmt.Errorf("%q: a score is never below 0", text)
		case err == nil:
			c.Above, rest = above, strings.TrimSpace(before)
		}
	}
	c.Filter = rest
	_, _, err := cutFilter(rest)
	return c, err
}

func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}

// cutFilter cuts facet:value.
func cutFilter(text string) (facet, value string, err error) {
	facet, value, _ = strings.Cut(text, ":")
	if facet == "" || value == "" {
		return "", "", cli.Usagef("%q: must have the form facet:value", text)
	}
	return facet, value, nil
}
