package history_test

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/affinitytest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
)

// TestScenarios plays the stories in testdata/scenarios:
//
//	block [dictionary]   lines "<time> [<type> <name> <facet>:<value>[*<count>] ... @<index>/<objectID> ...]", one event each; shows
//	           the stored block and, once it is read back, what differs from those lines
//	manifest [version=] [complete=]   lines "announced <from> <to> <ticket>" and
//	           "block <from> <to> ticket=<n>/<n> newest=<time> events=<n> bytes=<n>"; shows the stored manifest and,
//	           once it is read back, what differs. A place is <time>[/<id>], "next" after an id for the place after
//	           it, or "end"
//	gaps from=   of the last manifest
func TestScenarios(t *testing.T) {
	affinitytest.Scenarios(t, func() func(*testing.T, *datadriven.TestData) (string, error) {
		var m history.Manifest
		return func(t *testing.T, d *datadriven.TestData) (string, error) { return play(t, d, &m) }
	})
}

func play(t *testing.T, d *datadriven.TestData, m *history.Manifest) (string, error) {
	switch d.Cmd {
	case "block":
		b := history.NewBuilder()
		if d.HasArg("dictionary") {
			b.Use(sampleDictionary())
		}
		return playBlock(b, d.Input)
	case "manifest":
		return playManifest(t, d, m)
	case "gaps":
		var from string
		d.ScanArgs(t, "from", &from)
		p, err := parsePos(from)
		var b strings.Builder
		for _, g := range m.Gaps(p) {
			fmt.Fprintf(&b, "%s to %s\n", formatPos(g.From), formatPos(g.To))
		}
		return b.String(), err
	default:
		return "", fmt.Errorf("unknown command %q", d.Cmd)
	}
}

func playBlock(b *history.Builder, input string) (string, error) {
	for line := range strings.Lines(input) {
		e, err := parseEvent(line)
		if err != nil {
			return "", err
		}
		if !b.Add(e) {
			return "", fmt.Errorf("%q does not fit", line)
		}
	}
	block := b.AppendBlock(nil)
	var again strings.Builder
	for e, err := range history.Events(block, shelf{7: sampleDictionary()}) {
		if err != nil {
			return "", err
		}
		again.WriteString(formatEvent(e) + "\n")
	}
	out := fmt.Sprintf("%d bytes\n%s", len(block), hex.Dump(block))
	if back := strings.TrimSuffix(again.String(), "\n"); back != input {
		out += "read back:\n" + again.String()
	}
	return out, nil
}

func parseEvent(line string) (affinity.Event, error) {
	words := strings.Fields(line)
	at, err := time.Parse(time.RFC3339Nano, words[0])
	e := affinity.Event{Time: at.UnixMilli()}
	if len(words) == 1 {
		return e, err
	}
	e.Type, e.Name = event.Type(words[1]), words[2]
	for _, w := range words[3:] {
		if object, named := strings.CutPrefix(w, "@"); named {
			index, id, _ := strings.Cut(object, "/")
			e.Index, e.ObjectIDs = index, append(e.ObjectIDs, id)
			continue
		}
		facet, value, _ := strings.Cut(w, ":")
		c := affinity.Count{Facet: facet, N: 1}
		var n string
		var many bool
		if c.Value, n, many = strings.Cut(value, "*"); many {
			if c.N, err = strconv.Atoi(n); err != nil {
				return e, err
			}
		}
		e.Counts = append(e.Counts, c)
	}
	return e, err
}

func formatEvent(e affinity.Event) string {
	words := []string{affinitytest.FormatTime(e.Time)}
	if e.Type != "" {
		words = append(words, string(e.Type), e.Name)
	}
	for _, c := range e.Counts {
		w := c.Facet + ":" + c.Value
		if c.N != 1 {
			w += fmt.Sprint("*", c.N)
		}
		words = append(words, w)
	}
	for _, id := range e.ObjectIDs {
		words = append(words, "@"+e.Index+"/"+id)
	}
	return strings.Join(words, " ")
}

func playManifest(t *testing.T, d *datadriven.TestData, m *history.Manifest) (string, error) {
	*m = history.Manifest{}
	d.MaybeScanArgs(t, "version", &m.Version)
	d.MaybeScanArgs(t, "complete", &m.Complete)
	for line := range strings.Lines(d.Input) {
		words := strings.Fields(line)
		from, err := parsePos(words[1])
		if err != nil {
			return "", err
		}
		to, err := parsePos(words[2])
		if err != nil {
			return "", err
		}
		r := history.Range{From: from, To: to}
		if words[0] == "announced" {
			ticket, err := strconv.ParseInt(words[3], 10, 64)
			if err != nil {
				return "", err
			}
			m.Announced = &history.Announcement{Range: r, Ticket: ticket}
			continue
		}
		b, err := parseBlock(r, words[3:])
		if err != nil {
			return "", err
		}
		*m = m.With(b)
	}
	stored := m.AppendBinary(nil)
	again, err := history.ParseManifest(stored)
	if fmt.Sprintf("%+v", again.Blocks) != fmt.Sprintf("%+v", m.Blocks) || err != nil {
		return "", fmt.Errorf("read back as %+v: %v", again, err)
	}
	return fmt.Sprintf("%d bytes\n%s", len(stored), hex.Dump(stored)), nil
}

func parseBlock(r history.Range, words []string) (history.Block, error) {
	b := history.Block{Range: r}
	for _, w := range words {
		key, val, _ := strings.Cut(w, "=")
		var err error
		switch key {
		case "ticket":
			_, err = fmt.Sscanf(val, "%d/%d", &b.ID.Ticket, &b.ID.N)
		case "newest":
			var p history.Pos
			p, err = parsePos(val)
			b.Newest = p.Time
		case "events":
			b.Events, err = strconv.Atoi(val)
		case "bytes":
			b.Bytes, err = strconv.Atoi(val)
		default:
			err = fmt.Errorf("unknown word %q", w)
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

func parsePos(s string) (history.Pos, error) {
	if s == "end" {
		return history.End, nil
	}
	s, next := strings.CutSuffix(s, "/next")
	at, id, _ := strings.Cut(s, "/")
	ms, err := time.Parse(time.RFC3339Nano, at)
	p := history.Pos{Time: ms.UnixMilli(), ID: id}
	if next {
		p = p.Next()
	}
	return p, err
}

func formatPos(p history.Pos) string {
	switch id, next := strings.CutSuffix(p.ID, "\x00"); {
	case p.Time == math.MaxInt64:
		return "end"
	case next:
		return affinitytest.FormatTime(p.Time) + "/" + id + "/next"
	case id != "":
		return affinitytest.FormatTime(p.Time) + "/" + id
	}
	return affinitytest.FormatTime(p.Time)
}
