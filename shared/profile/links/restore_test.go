package links_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/profile/links"
)

func everyRow(string) bool { return true }

// entryAt is a closed entry of an hour.
func entryAt(known string, at int64) links.Entry {
	return links.Entry{Known: known, Since: at * hour, To: (at + 1) * hour, Was: links.Open, From: at * hour, At: at * hour, By: "e"}
}

func copyOf(entries ...links.Entry) links.Copy {
	return links.Copy{Cell: links.Cell{Role: links.Anonymous, Entries: entries}}
}

func TestRestoredEntries(t *testing.T) {
	row := (&links.Cell{}).Link(evidence("k", 10), none, none, 2*hour) // from hour 8 on
	undone, _ := row.Unlink("k", 30*hour)
	dead, _ := row.Kill("k", deleted(20).Tombstone, none)
	full := links.Cell{Role: links.Anonymous}
	for n := range int64(links.MaxEntries) {
		full.Entries = append(full.Entries, entryAt("k", n))
	}
	open := entryAt("l", 25)
	open.To = links.Open
	void := entryAt("l", 9)
	void.State, void.Until = links.Void, deleted(12).Tombstone
	tests := map[string]struct {
		row         links.Cell
		from        links.Copy
		x           links.Exclusion
		added, left int
		lists       func(string) bool
	}{
		"the entry itself":                {row: row, from: copyOf(row.Entries...)},
		"the entry, unlinked here":        {row: undone, from: copyOf(row.Entries...)},
		"another, unlinked here":          {row: undone, from: copyOf(entryAt("k", 29)), left: 1},
		"later than the unlinking":        {row: undone, from: copyOf(entryAt("k", 31)), added: 1},
		"before":                          {row: row, from: copyOf(entryAt("l", 7)), added: 1},
		"within":                          {row: row, from: copyOf(entryAt("l", 8)), left: 1},
		"open beside open":                {row: row, from: copyOf(open), left: 1},
		"open after dead":                 {row: dead, from: copyOf(open), added: 1},
		"within dead":                     {row: dead, from: copyOf(entryAt("l", 15)), left: 1},
		"void within":                     {row: row, from: copyOf(void), added: 1},
		"ended here":                      {row: row, from: copyOf(open), x: deleted(12), added: 1},
		"ended by the tombstone of both":  {from: links.Copy{Cell: links.Cell{Entries: append([]links.Entry{open}, row.Entries...)}, Deleted: deleted(12).Tombstone}, added: 2},
		"no room":                         {row: full, from: copyOf(entryAt("l", 99)), left: 1},
		"no room in the list":             {from: copyOf(entryAt("l", 1), void), added: 1, left: 1, lists: func(string) bool { return false }},
		"two of the dump that contradict": {from: copyOf(entryAt("l", 1), entryAt("m", 1)), added: 1, left: 1},
	}
	for name, c := range tests {
		if c.lists == nil {
			c.lists = everyRow
		}
		next, changed, left := c.row.Restore(c.from, c.x, c.lists)
		added := len(next.Entries) - len(c.row.Entries)
		if added != c.added || left != c.left || changed != (added > 0) || next.Role != links.Anonymous {
			t.Errorf("%s: %d added, %d left out, changed %t; want %d, %d", name, added, left, changed, c.added, c.left)
		}
		if kept := next.Entries[:len(c.row.Entries)]; !slices.Equal(c.row.Entries, kept) {
			t.Errorf("%s: the row had other entries: %+v, now %+v", name, c.row.Entries, kept)
		}
		if changed && len(next.Owes(c.x)) == 0 {
			t.Errorf("%s: nobody is marked", name)
		}
		if _, again, _ := next.Restore(c.from, c.x, c.lists); again {
			t.Errorf("%s: restored again, it changes", name)
		}
	}
}

func TestRestoredList(t *testing.T) {
	row := links.Cell{Role: links.Known, List: []links.Listed{{Token: "own", At: 1}, {Token: "a", At: 5}, {Token: "b", At: 9}}}
	list := []links.Listed{{Token: "b", At: 3, Shut: 6}, {Token: "a", At: 4, Shut: 7}, {Token: "c", At: 2}}
	want := []links.Listed{{Token: "b", At: 9}, {Token: "a", At: 5, Shut: 7}, {Token: "c", At: 2}, {Token: "own", At: 1}}
	next, changed := row.RestoreList(list)
	if diff := cmp.Diff(want, next.List); diff != "" || !changed {
		t.Errorf("changed %t, (-want +got):\n%s", changed, diff)
	}
	if _, again := next.RestoreList(list); again {
		t.Error("restored again, it changes")
	}
	if row.List[0].Token != "own" || len(row.List) != 3 {
		t.Errorf("the row itself has changed: %v", row.List)
	}
	var many []links.Listed
	for n := range links.MaxEntries {
		many = append(many, links.Listed{Token: fmt.Sprint("m", n), At: 1})
	}
	if next, _ := row.RestoreList(many); len(next.List) != links.MaxEntries {
		t.Errorf("%d tokens in the list", len(next.List))
	}
	if next, changed := (&links.Cell{}).RestoreList(nil); !changed || next.Role != links.Known {
		t.Errorf("a token without a role: %+v", next)
	}
}
