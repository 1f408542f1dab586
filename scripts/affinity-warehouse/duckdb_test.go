package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
)

// duckDB is a database in memory.
type duckDB struct {
	in  *json.Encoder
	out *bufio.Reader
}

// installed installs DuckDB once. It needs Node and npm's registry.
var installed = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "affinity-duckdb")
	if err != nil {
		return "", err
	}
	folder = dir
	for _, name := range []string{"package.json", "package-lock.json", "query.mjs"} {
		text, err := os.ReadFile(filepath.Join("duckdb", name))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return "", err
		}
	}
	install := exec.Command("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	install.Dir = dir
	out, err := install.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return dir, err
})

// folder is where DuckDB is installed, empty before.
var folder string

func TestMain(m *testing.M) {
	code := m.Run()
	if folder != "" {
		_ = os.RemoveAll(folder)
	}
	os.Exit(code)
}

// startDuckDB starts a database.
func startDuckDB(t *testing.T) duckDB {
	t.Helper()
	must.Start(t, must.Clients)
	dir, err := installed()
	if err != nil {
		t.Fatalf("DuckDB cannot be installed, so neither exports nor the SQL of the warehouse are tested: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "query.mjs")
	cmd.Dir, cmd.Stderr = dir, t.Output()
	in, err := cmd.StdinPipe()
	must.Succeed(t, err)
	out, err := cmd.StdoutPipe()
	must.Succeed(t, err)
	must.Succeed(t, cmd.Start())
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	return duckDB{json.NewEncoder(in), bufio.NewReaderSize(out, 1<<20)}
}

// query returns the rows of a statement.
func (d duckDB) query(t *testing.T, statement string, args ...any) []map[string]any {
	t.Helper()
	statement = fmt.Sprintf(statement, args...)
	must.Succeed(t, d.in.Encode(statement))
	line, err := d.out.ReadBytes('\n')
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	var rows []map[string]any
	if err := json.Unmarshal(line, &rows); err != nil {
		t.Fatalf("DuckDB answers %s to %s", line, statement)
	}
	return rows
}

// number returns the only value of a statement.
func (d duckDB) number(t *testing.T, statement string, args ...any) int {
	t.Helper()
	for _, value := range d.query(t, statement, args...)[0] {
		var n int
		_, err := fmt.Sscan(fmt.Sprint(value), &n)
		must.Succeed(t, err)
		return n
	}
	panic("no column")
}

// column is one of a schema of BigQuery.
type column struct {
	Name, Type, Mode string
	Fields           []column
}

const module = "../../terraform/modules/warehouse/"

func readSchema(t *testing.T, file string) (columns []column) {
	t.Helper()
	text, err := os.ReadFile(module + file)
	must.Succeed(t, err)
	must.Succeed(t, json.Unmarshal(text, &columns))
	return columns
}

// duck returns the column's type in DuckDB.
func (c column) duck() string {
	name := map[string]string{"STRING": "VARCHAR", "TIMESTAMP": "TIMESTAMP WITH TIME ZONE", "INTEGER": "BIGINT"}[c.Type]
	if c.Type == "RECORD" {
		var fields []string
		for _, f := range c.Fields {
			fields = append(fields, f.Name+" "+f.duck())
		}
		name = "STRUCT(" + strings.Join(fields, ", ") + ")"
	}
	if c.Mode == "REPEATED" {
		name += "[]"
	}
	return name
}

// create creates a table with the columns of a schema.
func (d duckDB) create(t *testing.T, table, schema string) {
	t.Helper()
	var columns []string
	for _, c := range readSchema(t, schema) {
		text := c.Name + " " + c.duck()
		if c.Mode == "REQUIRED" {
			text += " NOT NULL"
		}
		columns = append(columns, text)
	}
	d.query(t, "CREATE TABLE %s (%s)", table, strings.Join(columns, ", "))
}

// load adds messages to a table, as a subscription with the table's schema does: a field is a column.
func (d duckDB) load(t *testing.T, table, schema string, files string) {
	t.Helper()
	var types, names []string
	for _, c := range readSchema(t, schema) {
		types, names = append(types, fmt.Sprintf("%s: '%s'", c.Name, c.duck())), append(names, c.Name)
	}
	d.query(t, "INSERT INTO %s SELECT %s FROM read_json('%s', format='newline_delimited', maximum_object_size=16000000, columns={%s})", table,
		strings.Join(names, ", "), files, strings.Join(types, ", "))
}

// sql returns a text of the module over the tables of the test, as templatefile of Terraform does over those of
// BigQuery.
func sql(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(module + file)
	must.Succeed(t, err)
	return strings.NewReplacer("${event_rows}", "event_rows", "${deletions}", "deletions").Replace(string(text))
}
