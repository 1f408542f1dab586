package store_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/store"
)

var rewrite = flag.Bool("rewrite", false, "write functions/docs/reference/tables.md as terraform/bigtable.json describes the tables")

const shared = "../"

// Every table and family says what it is, whose, and what it is made of.
func TestTablesAreDescribed(t *testing.T) {
	tables, names := declared(t), map[string]bool{}
	for _, table := range tables {
		for _, f := range table.Families {
			names[table.Name+"/"+f.Name] = true
		}
	}
	for _, table := range tables {
		if table.Holds == "" || !strings.HasPrefix(table.Key, "app,") {
			t.Errorf("table %s: key %q, holds %q", table.Name, table.Key, table.Holds)
		}
		for _, f := range table.Families {
			at := table.Name + "/" + f.Name
			if f.Holds == "" || len(f.Formats) == 0 {
				t.Errorf("%s holds %q in formats %v", at, f.Holds, f.Formats)
			}
			if _, err := os.Stat(filepath.Join("../..", f.Owner)); err != nil || !strings.HasPrefix(f.Owner, "shared/") {
				t.Errorf("%s: package %q does not exist: %v", at, f.Owner, err)
			}
			erased := slices.Contains([]store.Erasure{store.ByDeletion, store.LeavesRow, store.ByAgeOfCells, store.ByBuild}, f.Erased)
			if f.Personal != erased || !f.Personal && f.Erased != "" {
				t.Errorf("%s: personal %t, erased by %q", at, f.Personal, f.Erased)
			}
			if f.Erased == store.ByAgeOfCells && f.Days == 0 {
				t.Errorf("%s: only age removes what it holds of a user, and no cell of it has one", at)
			}
			for _, from := range f.DerivedFrom {
				if !names[from] || from == at {
					t.Errorf("%s cannot be derived from %q", at, from)
				}
			}
		}
	}
}

// The format that is described is the one that the code writes: the value of the
// constant that the description names.
func TestDescribedFormatsAreWritten(t *testing.T) {
	for _, table := range declared(t) {
		for _, f := range table.Families {
			for _, format := range f.Formats {
				at := fmt.Sprintf("%s/%s, column %s", table.Name, f.Name, format.Columns)
				if (format.Version > 0) != (format.Codec != "") || (format.Version > 0) == (format.Encoding != "") {
					t.Errorf("%s: want a codec with a version, or an encoding: %+v", at, format)
				} else if format.Version > 0 {
					if got := constant(t, format.Codec); got != format.Version {
						t.Errorf("%s: described as format %d, and %s is %d", at, format.Version, format.Codec, got)
					}
				}
			}
		}
	}
}

// constant returns a constant of the source, named as shared/package.constant.
func constant(t *testing.T, name string) int {
	t.Helper()
	dir, constant, _ := strings.Cut(strings.TrimPrefix(name, "shared/"), ".")
	files, err := filepath.Glob(filepath.Join(shared, dir, "*.go"))
	must.Succeed(t, err)
	line := regexp.MustCompile(`(?m)^\s*(?:const )?` + regexp.QuoteMeta(constant) + `\s+= (\d+)\b`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must.Succeed(t, err)
		if m := line.FindSubmatch(text); m != nil && !strings.HasSuffix(file, "_test.go") {
			n, err := strconv.Atoi(string(m[1]))
			must.Succeed(t, err)
			return n
		}
	}
	t.Errorf("no file of shared/%s says %s = NUMBER", dir, constant)
	return 0
}

// functions/docs/reference/tables.md is made of terraform/bigtable.json.
func TestTablesPage(t *testing.T) {
	want := tablesPage(declared(t))
	if *rewrite {
		must.Succeed(t, os.WriteFile("../../functions/docs/reference/tables.md", []byte(want), 0o644))
	}
	got, err := os.ReadFile("../../functions/docs/reference/tables.md")
	if err != nil || string(got) != want {
		t.Errorf("reference/tables.md is out of date (%v): go test ./shared/store -run TestTablesPage -rewrite", err)
	}
}

func tablesPage(tables []store.Table) string {
	var b strings.Builder
	b.WriteString("# Tables\n\n" +
		"Every table of Bigtable, and what each of its families holds. `go test ./shared/store -run TestTablesPage -rewrite` makes this page of\n" +
		"[terraform/bigtable.json](../../../terraform/bigtable.json). `affinity schema describe` prints the same.\n\n" +
		"*Personal* says whether keys or values name a user, or a keyed hash of one, and what removes that: `deletion` of the user, `age`\n" +
		"of the cells alone, the next `build`, or `partly`: the deletion leaves the row with the ticket counter, the tombstone and the\n" +
		"opt-out, which keep it in force.\n" +
		"The deletion of an app removes all of its rows in every table. The first byte of a value with a *format* is the number of the\n" +
		"format; the number here is the newest that the engine writes, and older ones stay readable.\n")
	for _, table := range tables {
		fmt.Fprintf(&b, "\n## %s\n\n%s. Key: `%s`\n\n| family | holds | owner | personal | formats | derived from |\n|---|---|---|---|---|---|\n",
			table.Name, upper(table.Holds), table.Key)
		for _, f := range table.Families {
			personal := "no"
			if f.Personal {
				personal = "yes, " + string(f.Erased)
			}
			formats := make([]string, len(f.Formats))
			for i, format := range f.Formats {
				formats[i] = fmt.Sprintf("`%s` %s", format.Columns, strings.TrimPrefix(format.String(), format.Columns+": "))
			}
			fmt.Fprintf(&b, "| `%s` | %s | [%s](../../../shared/%s) | %s | %s | %s |\n", f.Name, f.Holds, strings.TrimPrefix(f.Owner, "shared/"),
				strings.TrimPrefix(f.Owner, "shared/"), personal, strings.Join(formats, "; "), strings.Join(f.DerivedFrom, ", "))
		}
	}
	return b.String()
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
