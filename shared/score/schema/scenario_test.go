package schema_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/affinitytest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// TestScenarios runs testdata/scenarios. Quoted texts are Go strings.
//
//	cells schema= encoding=   lines `<type> "<name>" "<facet>":"<value>"[*<count>] ...`, one event each; shows its cells
//	                          and, once they are read back, what differs from the line
//	read family=              lines are values, in quotes or as they are; shows the filters that are read
//	columns                   lines `<family> "<qualifier>"`; shows what the column says, and how it is written if not so
func TestScenarios(t *testing.T) {
	affinitytest.Scenarios(t, func() func(*testing.T, *datadriven.TestData) (string, error) { return play })
}

func play(t *testing.T, d *datadriven.TestData) (string, error) {
	var line func(string) (string, error)
	switch d.Cmd {
	case "cells":
		var n, e string
		d.ScanArgs(t, "schema", &n)
		d.ScanArgs(t, "encoding", &e)
		encoder := schema.NewEncoder(schema.Name(n), schema.Encoding(e))
		line = func(l string) (string, error) { return playCells(encoder, l) }
	case "read":
		var family string
		d.ScanArgs(t, "family", &family)
		line = func(l string) (string, error) { return playRead(family, l) }
	case "columns":
		line = playColumn
	default:
		return "", fmt.Errorf("unknown command %q", d.Cmd)
	}
	var b strings.Builder
	for l := range strings.Lines(d.Input) {
		out, err := line(strings.TrimSuffix(l, "\n"))
		if err != nil {
			return "", fmt.Errorf("%s: %w", l, err)
		}
		b.WriteString(out)
	}
	return b.String(), nil
}

func playCells(encoder *schema.Encoder, line string) (string, error) {
	typ, name, counts, err := parseEvent(line)
	if err != nil {
		return "", err
	}
	cells := encoder.Append(nil, typ, name, counts)
	var b strings.Builder
	for _, c := range cells {
		fmt.Fprintf(&b, "%s %q\n", c.Family, c.Qualifier)
		if c.Value[0] == '[' {
			fmt.Fprintf(&b, "%s\n", c.Value)
		} else {
			b.WriteString(hex.Dump(c.Value))
		}
	}
	if len(cells) == 0 {
		b.WriteString("no cells\n")
	}
	again, err := readCells(cells)
	if err != nil {
		return "", err
	}
	if back := formatEvent(typ, name, again); back != line {
		b.WriteString("read back: " + back + "\n")
	}
	return b.String(), nil
}

// readCells reads the cells of an event.
func readCells(cells []schema.Cell) (counts []affinity.Count, err error) {
	for _, c := range cells {
		column, err := schema.ParseColumn(c.Family, c.Qualifier)
		if err != nil {
			return nil, err
		}
		err = schema.EachCount(c.Family, c.Value, func(facet, value []byte, n int) {
			f := column.Facet
			if facet != nil {
				f += string(facet)
			}
			counts = append(counts, affinity.Count{Facet: f, Value: string(value), N: n})
		})
		if err != nil {
			return nil, err
		}
	}
	return counts, nil
}

func parseEvent(line string) (typ event.Type, name string, counts []affinity.Count, err error) {
	word, rest, _ := strings.Cut(line, " ")
	if name, rest, err = cutQuoted(rest); err != nil {
		return "", "", nil, err
	}
	for rest != "" {
		c := affinity.Count{N: 1}
		if c.Facet, rest, err = cutQuoted(strings.TrimPrefix(rest, " ")); err != nil {
			return "", "", nil, err
		}
		if c.Value, rest, err = cutQuoted(strings.TrimPrefix(rest, ":")); err != nil {
			return "", "", nil, err
		}
		if strings.HasPrefix(rest, "*") {
			n, after, more := strings.Cut(rest[1:], " ")
			if c.N, err = strconv.Atoi(n); err != nil {
				return "", "", nil, err
			}
			if rest = ""; more {
				rest = " " + after
			}
		}
		counts = append(counts, c)
	}
	return event.Type(word), name, counts, nil
}

func cutQuoted(s string) (text, rest string, err error) {
	quoted, err := strconv.QuotedPrefix(s)
	if err != nil {
		return "", "", fmt.Errorf("want quotes before %q: %w", s, err)
	}
	text, err = strconv.Unquote(quoted)
	return text, s[len(quoted):], err
}

func formatEvent(typ event.Type, name string, counts []affinity.Count) string {
	words := []string{string(typ), strconv.Quote(name)}
	for _, c := range counts {
		words = append(words, formatCount(c))
	}
	return strings.Join(words, " ")
}

func formatCount(c affinity.Count) string {
	s := strconv.Quote(c.Facet) + ":" + strconv.Quote(c.Value)
	if c.N != 1 {
		s += "*" + strconv.Itoa(c.N)
	}
	return s
}

func playRead(family, value string) (string, error) {
	var err error
	if strings.HasPrefix(value, `"`) {
		if value, err = strconv.Unquote(value); err != nil {
			return "", err
		}
	}
	var words []string
	err = schema.EachCount(family, []byte(value), func(facet, value []byte, n int) {
		s := formatCount(affinity.Count{Facet: string(facet), Value: string(value), N: n})
		if facet == nil {
			s = s[len(`"":`):]
		}
		words = append(words, s)
	})
	switch {
	case errors.Is(err, schema.ErrNewer):
		words = append(words, "newer")
	case err != nil && strings.Contains(err.Error(), "damaged"):
		words = append(words, "damaged")
	case err != nil:
		return "", err
	case len(words) == 0:
		words = append(words, "nothing")
	}
	return strings.Join(words, " ") + "\n", nil
}

func playColumn(line string) (string, error) {
	family, quoted, _ := strings.Cut(line, " ")
	qualifier, _, err := cutQuoted(quoted)
	if err != nil {
		return "", err
	}
	c, err := schema.ParseColumn(family, qualifier)
	if err != nil {
		return err.Error() + "\n", nil
	}
	if family != schema.FamilyWide {
		return fmt.Sprintf("%s %q\n", c.Type, c.Name), nil
	}
	out := fmt.Sprintf("%s %q %q\n", c.Type, c.Name, c.Facet)
	if q := schema.Qualifier(c.Type, c.Name, c.Facet); q != qualifier {
		out += fmt.Sprintf("written %q\n", q)
	}
	return out, nil
}
