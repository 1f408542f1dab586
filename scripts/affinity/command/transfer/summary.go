package transfer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/importer"
	"github.com/affinityengine/affinity/shared/api"
)

// summary is what an import did, as --json prints it.
type summary struct {
	Checked bool            `json:"checked"` // nothing was sent
	Seconds float64         `json:"seconds"`
	Objects *objectsSummary `json:"objects,omitempty"`
	Events  *eventsSummary  `json:"events,omitempty"`
	// End says how far the jobs are that follow the import.
	End *api.ImportEnd `json:"end,omitempty"`

	im    *importer.Importer
	begun time.Time
}

// fileSummary counts the lines of a file: read is the sum of all others.
type fileSummary struct {
	importer.Tally
	NotSent int `json:"notSent"`
}

type objectsSummary struct {
	Index string `json:"index"`
	fileSummary
	NotNumbers map[string]int `json:"notNumbers,omitempty"`
	Dropped    map[string]int `json:"dropped,omitempty"`
	Notes      []string       `json:"notes,omitempty"`
	stored     int
	tallied    string
}

type eventsSummary struct {
	fileSummary
	Received         int                  `json:"received"`
	Deleted          int                  `json:"deleted"`
	OptedOut         int                  `json:"optedOut"`
	Withheld         int                  `json:"withheld,omitempty"`
	OutsideRetention int                  `json:"outsideRetention"`
	Present          int                  `json:"present"`
	UnknownObjects   []api.UnknownObjects `json:"unknownObjects,omitempty"`
	// Kinds are names of events that are no types.
	Kinds []importer.Kind `json:"kinds,omitempty"`
	// Others and Without are those of importer.ArchiveAnswer.
	Others  int `json:"others,omitempty"`
	Without int `json:"without,omitempty"`
	tallied string
}

// newSummary begins the summary of an import.
func newSummary(im *importer.Importer) *summary {
	return &summary{Checked: im.Checks(), im: im, begun: time.Now()}
}

// seconds ends the import.
func (s *summary) seconds() float64 {
	s.Seconds = time.Since(s.begun).Seconds()
	return s.Seconds
}

func (s *summary) file() fileSummary {
	tally := s.im.Tally()
	return fileSummary{tally, tally.NotSent()}
}

// addObjects adds the last file of objects.
func (s *summary) addObjects(a importer.ObjectsAnswer, index string) {
	s.Objects = &objectsSummary{index, s.file(), a.NotNumbers, a.Dropped, a.Notes, a.Stored,
		tallied(s.im, "line", equalObjects)}
}

// addEvents adds the last file of events, or an archive. line and equal are as for tallied.
func (s *summary) addEvents(a api.ImportAnswer, line, equal string) {
	s.Events = &eventsSummary{fileSummary: s.file(), Received: a.Received, Deleted: a.Deleted, OptedOut: a.OptedOut,
		Withheld: a.Withheld, OutsideRetention: a.OutsideRetention, Present: a.Present,
		UnknownObjects: a.UnknownObjects, Kinds: s.im.Kinds(),
		tallied: tallied(s.im, line, equal)}
}

// What Tally.Text says of lines that are equal to others.
const (
	equalEvents  = "equal to another line and counted once (an eventId makes each count)"
	equalObjects = "with the objectID of another line, of which the last one stays"
)

// tallied says what became of the lines of the last file of an import, each of which is a
// line or what else it is called. equal says to what equal ones are equal.
func tallied(im *importer.Importer, line, equal string) string {
	did := "imported"
	if im.Checks() {
		did = "can go in"
	}
	return im.Tally().Text(line, did, equal)
}

// print prints what an import did, or that it was a check, and what became of the lines of
// its files. It returns an error if there are bad lines.
func (s *summary) print(t *command.Tool, did string) error {
	if s.Objects != nil {
		s.Objects.remark(t)
	}
	if t.JSON {
		if err := cli.PrintJSON(t.Out, s); err != nil {
			return err
		}
		return s.badLines()
	}
	if s.im.Checks() {
		did = "checked the files: nothing was sent"
	}
	fmt.Fprintln(t.Out, did)
	if s.Objects != nil {
		fmt.Fprintln(t.Out, "objects: "+s.Objects.tallied)
	}
	if s.Events != nil {
		fmt.Fprintln(t.Out, "events: "+s.Events.tallied)
	}
	if s.End != nil {
		fmt.Fprintln(t.Out, followed(*s.End))
	}
	return s.badLines()
}

func (s *summary) badLines() error {
	if err := s.im.BadLines(); err != nil {
		return cli.WithCode(err, command.ExitLines)
	}
	return nil
}

// remark prints what the objects have that does not count as their file says.
func (o *objectsSummary) remark(t *command.Tool) {
	for _, note := range o.Notes {
		fmt.Fprintln(t.Err, cli.Printable(note))
	}
	for _, facet := range slices.Sorted(maps.Keys(o.NotNumbers)) {
		fmt.Fprintf(t.Err, "warning: in no numeric band of %s, because they are no numbers: %s\n", cli.Printable(facet),
			cli.Count(o.NotNumbers[facet], "value"))
	}
	for _, facet := range slices.Sorted(maps.Keys(o.Dropped)) {
		fmt.Fprintf(t.Err, "warning: without filters of %s, because a value has over 1,000 bytes or there are over 1,000 "+
			"values: %s\n", cli.Printable(facet), cli.Count(o.Dropped[facet], "object"))
	}
}

// warn prints what became of events that do not count as their file says.
func warn(t *command.Tool, counts api.ImportAnswer) {
	if counts.Received > 0 {
		fmt.Fprintf(t.Err, "warning: without a timestamp: %s; they got the time of import, and importing them again "+
			"counts them again\n",
			cli.Count(counts.Received, "event"))
	}
	if counts.OutsideRetention > 0 {
		fmt.Fprintf(t.Err, "warning: older than the app's retention: %s; they count in no profile; --shift-to-now "+
			"moves old data to today (are timestamps in milliseconds?)\n",
			cli.Count(counts.OutsideRetention, "event"))
	}
	if counts.Withheld > 0 {
		fmt.Fprintf(t.Err, "warning: dropped, because their user grants no purpose that they serve: %s\n",
			cli.Count(counts.Withheld, "event"))
	}
	if counts.OptedOut > 0 {
		fmt.Fprintf(t.Err, "warning: dropped, because their user has opted out: %s\n", cli.Count(counts.OptedOut, "event"))
	}
	if counts.Deleted > 0 {
		fmt.Fprintf(t.Err, "warning: older than the deletion of their user: %s; they count in no profile\n",
			cli.Count(counts.Deleted, "event"))
	}
	for _, u := range counts.UnknownObjects {
		fmt.Fprintf(t.Err, "warning: %s\n", cli.Printable(unknown(u)))
	}
}

// unknown says which objects of events an index does not hold, and what gives them filters.
func unknown(u api.UnknownObjects) string {
	names, most, such := " name ", "", strings.Join(u.ObjectIDs[:min(len(u.ObjectIDs), 1)], "")
	if u.Events == 1 {
		names = " names "
	}
	if u.More {
		most = "more than "
	}
	if at := u.Elsewhere; at != nil {
		such = at.ObjectID + "; index " + at.Index + " holds it"
	}
	return cli.Count(u.Events, "event") + names + most + cli.Count(len(u.ObjectIDs), "object") + " that index " + u.Index +
		" does not hold (such as " + such + "). `affinity catalog import --index " + cli.ShellWord(u.Index) +
		"` and then `affinity reenrich` give them filters"
}
