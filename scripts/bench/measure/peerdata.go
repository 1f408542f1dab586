package measure

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
)

// peerData are the events of a data set in files that databases load.
type peerData struct {
	*dataset
	dir string
}

// tables of a database. The columns of counts name rows of the others by their numbers;
// those of the kinds and facets that score have the strategy's scores.
var peerTables = []struct{ name, columns string }{
	{"users", "id integer, name text"},
	{"kinds", "id integer, type text, name text, score double precision"},
	{"facets", "id integer, name text, score double precision"},
	{"vals", "id integer, name text"},
	{"counts", "user_id integer, time bigint, kind integer, facet integer, val integer, n integer"},
}

// write writes a file for each table, without a head.
func (p peerData) write() error {
	users, kindRows, facets, vals := [][]string{}, [][]string{}, [][]string{}, [][]string{}
	for i := range p.users {
		users = append(users, []string{strconv.Itoa(i), p.user(i)})
	}
	for i, k := range kinds {
		kindRows = append(kindRows, []string{strconv.Itoa(i), string(k.EventType), k.EventName, strconv.Itoa(k.Score)})
	}
	ids := map[string]int{} // of values, with their facets
	for f, name := range p.names {
		facets = append(facets, []string{strconv.Itoa(f), name, strconv.Itoa(p.strategy.FacetScore(name))})
		for _, value := range p.vocabulary[f] {
			ids[value] = len(ids)
			vals = append(vals, []string{strconv.Itoa(ids[value]), value})
		}
	}
	for name, rows := range map[string][][]string{"users": users, "kinds": kindRows, "facets": facets, "vals": vals} {
		err := writeFile(p.file(name), func(w io.Writer) error { return csv.NewWriter(w).WriteAll(rows) })
		if err != nil {
			return err
		}
	}
	return writeFile(p.file("counts"), func(w io.Writer) error { return p.counts(csv.NewWriter(w), ids) })
}

func (p peerData) file(table string) string { return filepath.Join(p.dir, table+".csv") }

// counts writes a row for each value of each event.
func (p peerData) counts(w *csv.Writer, ids map[string]int) error {
	kindOf := func(typ event.Type, name string) int {
		for i, k := range kinds {
			if k.EventType == typ && k.EventName == name {
				return i
			}
		}
		return -1
	}
	var events []entry
	for i := range p.users {
		events = p.events(i, events)
		for _, e := range events {
			at, kind := strconv.FormatInt(e.Time, 10), strconv.Itoa(kindOf(e.Type, e.Name))
			for _, c := range e.Counts {
				row := []string{strconv.Itoa(i), at, kind, strconv.Itoa(slices.Index(p.names, c.Facet)),
					strconv.Itoa(ids[c.Value]), strconv.Itoa(c.N)}
				if err := w.Write(row); err != nil {
					return err
				}
			}
		}
	}
	w.Flush()
	return w.Error()
}

// texts makes the table of the layout text from the others.
const texts = "create table texts as select u.name as user_token, c.time, k.type as event_type, k.name as " +
	"event_name, " +
	"f.name as facet, v.name as val, c.n from counts c join users u on u.id = c.user_id join kinds k on k.id = c.kind " +
	"join facets f on f.id = c.facet join vals v on v.id = c.val"

// profiles is the statement that computes the profiles of a layout and stores them:
// the formula of the engine, with its window and half-life. create is how the database
// begins to create a table of an answer.
func (p peerData) profiles(layout, create string) string {
	weight := "k.score * f.score * c.n"
	if len(p.strategy.HalfLives) > 0 {
		weight += fmt.Sprintf(" * power(2::double precision, (c.time - %d) / %g::double precision)", p.window.Now,
			p.strategy.HalfLives[0].Millis())
	}
	window := fmt.Sprintf("c.time >= %d and c.time <= %d", p.window.From(), p.window.Now)
	if layout == "ids" {
		return fmt.Sprintf("%s as select c.user_id, c.facet, c.val, sum(%s) as score from counts c "+
			"join kinds k on k.id = c.kind join facets f on f.id = c.facet where %s and k.score > 0 and f.score > 0 "+
			"group by 1, 2, 3", create, weight, window)
	}
	return fmt.Sprintf("%s as select c.user_token, c.facet, c.val, sum(%s) as score from texts c "+
		"join kinds k on k.type = c.event_type and k.name = c.event_name join facets f on f.name = c.facet "+
		"where %s and k.score > 0 and f.score > 0 group by 1, 2, 3", create, weight, window)
}

// export selects the stored profiles with names.
func export(layout string) string {
	if layout == "ids" {
		return "select u.name, f.name, v.name, p.score from profiles p join users u on u.id = p.user_id join facets " +
			"f on f.id = p.facet join vals v on v.id = p.val"
	}
	return "select user_token, facet, val, score from profiles"
}

// verify compares the profiles in a file with the engine's.
func (p peerData) verify(path, layout string, want map[scored]float64) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read the profiles: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	rows := csv.NewReader(f)
	rows.FieldsPerRecord, rows.ReuseRecord = 4, true
	for n := 0; ; n++ {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) && n == len(want) {
			return nil
		}
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%d values have scores, the engine has %d", n, len(want))
		}
		if err != nil {
			return fmt.Errorf("read the profiles: %w", err)
		}
		got, err := strconv.ParseFloat(row[3], 64)
		if score, ok := want[scored{row[0], row[1], row[2]}]; err != nil || !ok || !same(got, score) {
			return fmt.Errorf("%s of %s, layout %s: %s is not the engine's %v", strings.Join(row[1:3], ":"), row[0],
				layout, row[3], score)
		}
	}
}
