package engines

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/affinityengine/affinity/shared/local/boosttest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/simulate"
	"github.com/affinityengine/affinity/shared/rank/boost"
)

// PostgreSQL and the formula both compute in float64, and add in different orders.
const postgresTolerance = 1e-12

// programs returns the directory of the newest PostgreSQL of Debian or Ubuntu.
func programs(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatal("PostgreSQL is not installed, so its order is not tested: apt-get install postgresql")
	}
	return filepath.Dir(slices.Max(found))
}

// unprivileged makes programs run as nobody, and gives them a directory, where the
// test runs as root, which PostgreSQL refuses.
func unprivileged(t *testing.T, dir string) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, err1 := strconv.Atoi(nobody.Uid)
	gid, err2 := strconv.Atoi(nobody.Gid)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

// startPostgres starts a server of its own, which listens on a socket in a
// directory that only its user may enter.
func startPostgres(t *testing.T) *postgres {
	t.Helper()
	must.Start(t, must.Postgres)
	bin := programs(t)
	dir, err := os.MkdirTemp("", "affinity-pg") // a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	as := unprivileged(t, dir)
	command := func(name string, args ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(bin, name), args...)
		c.Dir, c.SysProcAttr = dir, as
		c.Env = []string{"LC_ALL=C"}
		return c
	}
	data := filepath.Join(dir, "data")
	if out, err := command("initdb", "-D", data, "-U", "affinity", "-A", "trust", "-E", "UTF8", "--no-sync", "--no-instructions").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	server := command("postgres", "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "jit=off")
	log, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Process.Signal(syscall.SIGINT); err != nil { // ends connections, and then itself
			t.Error(err)
		}
		if err := server.Wait(); err != nil {
			t.Error(err)
		}
	})
	lines := bufio.NewScanner(log)
	var said []string
	for lines.Scan() && !strings.Contains(lines.Text(), "ready to accept connections") {
		said = append(said, lines.Text())
	}
	p, err := connect(filepath.Join(dir, ".s.PGSQL.5432"), "affinity")
	if err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(said, "\n"))
	}
	t.Cleanup(func() {
		if err := p.conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// tables hold the same documents. Facets with at most one value have columns of
// the type one, and the others of the type many.
var tables = []struct{ name, one, many string }{
	{"mixed", "text", "text[]"},
	{"arrays", "text[]", "text[]"},
	{"objects", "jsonb", "jsonb"},
}

// facets of the columns. The field map gives the column maker for brand.
var facets = []struct {
	column, facet string
	one           bool
}{{"brand", "brand", true}, {"maker", "brand", true}, {"categories.lvl0", "categories.lvl0", true},
	{"price_range", "price_range", true}, {"color", "color", false}, {"tags", "tags", false}}

func fill(t *testing.T, p *postgres, docs []boosttest.Document) {
	t.Helper()
	run := func(statement string, params []*string) {
		if _, err := p.query(statement, params); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	for _, table := range tables {
		types := map[bool]string{true: table.one, false: table.many}
		definitions := "id text, relevance float8"
		for _, c := range facets {
			definitions += fmt.Sprintf(", %q %s", c.column, types[c.one])
		}
		run("create table "+table.name+" ("+definitions+")", nil)
		for i, d := range docs {
			relevance := strconv.FormatFloat(d.Text, 'g', -1, 64)
			row := []*string{&d.ID, &relevance}
			for _, c := range facets {
				row = append(row, column(t, d.Facets[c.facet], types[c.one], c.one, i%2 == 0))
			}
			run("insert into "+table.name+" values ($1, $2, $3, $4, $5, $6, $7, $8)", row)
		}
	}
}

// column writes the values of a facet, of which one has at most one. No values
// are null, or an empty list.
func column(t *testing.T, values []string, kind string, one, null bool) *string {
	t.Helper()
	if len(values) == 0 && (null || kind == "text") {
		return nil
	}
	encoded, err := json.Marshal(values)
	switch {
	case err != nil:
		t.Fatal(err)
	case kind == "text":
		return &values[0]
	case kind == "text[]":
		quoted := make([]string, len(values))
		for i, v := range values {
			quoted[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v) + `"`
		}
		array := "{" + strings.Join(quoted, ",") + "}"
		return &array
	case one && len(values) == 1:
		encoded, err = json.Marshal(values[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	text := string(encoded)
	return &text
}

// expression is a rendered query.
type expression struct {
	Expression string `json:"expression"`
	Params     []any  `json:"params"`
}

// bound returns the parameters as text, as drivers send them.
func (e expression) bound() ([]*string, error) {
	var params []*string
	for _, v := range e.Params {
		var text string
		switch v := v.(type) {
		case string:
			text = v
		case float64:
			text = strconv.FormatFloat(v, 'g', -1, 64)
		default:
			return nil, fmt.Errorf("parameter %v is neither a text nor a number", v)
		}
		params = append(params, &text)
	}
	return params, nil
}

// bind returns the expression of an answer and its parameters.
func bind(a boost.Answer) (factor string, params []*string, err error) {
	text, err := json.Marshal(a.Query)
	if err != nil {
		return "", nil, err
	}
	var e expression
	if err := json.Unmarshal(text, &e); err != nil {
		return "", nil, err
	}
	if len(a.Query) == 0 {
		e.Expression = "1"
	}
	params, err = e.bound()
	return e.Expression, params, err
}

// search returns the best rows of a table, with the answer's expression bound.
func (p *postgres) search(table string, a boost.Answer) ([]simulate.Hit, error) {
	factor, params, err := bind(a)
	if err != nil {
		return nil, err
	}
	rows, err := p.query("select id, relevance * ("+factor+") as score from "+table+" d order by score desc, id limit 10", params)
	if err != nil {
		return nil, fmt.Errorf("%w in %s", err, factor)
	}
	hits := make([]simulate.Hit, len(rows))
	for i, row := range rows {
		score, err := strconv.ParseFloat(row[1], 64)
		if err != nil {
			return nil, err
		}
		hits[i] = simulate.Hit{ID: row[0], Score: score}
	}
	return hits, nil
}

// The first ten rows of PostgreSQL are those of the formula, with its scores,
// over columns of type text, text[] and jsonb.
func TestPostgres(t *testing.T) {
	t.Parallel()
	p := startPostgres(t)
	r := random()
	docs := boosttest.Documents(r, documents/3) // PostgreSQL computes the expression for each
	fill(t, p, docs)
	for i := range *profiles {
		q := boosttest.Request(r, "postgres", "")
		if q.FieldMap != nil {
			q.FieldMap = map[string]string{"brand": "d.maker"}
		}
		a, err := boost.Render(q)
		if err != nil {
			t.Fatal(err)
		}
		weights, err := boosttest.Weights(q, a)
		if err != nil {
			t.Fatalf("profile %d: %v", i, err)
		}
		want := map[string]float64{}
		for _, d := range docs {
			want[d.ID] = d.Text * boosttest.Factor(q.Impact, weights, d.Document)
		}
		table := tables[i%len(tables)].name
		got, err := p.search(table, a)
		if err != nil {
			t.Fatalf("profile %d: %v", i, err)
		}
		if err := boosttest.Compare(got, want, top, postgresTolerance); err != nil {
			t.Fatalf("profile %d, %s with impact %d: %v", i, table, q.Impact, err)
		}
	}
	a, err := boost.Render(boosttest.Longest("postgres", ""))
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Affinities) != boost.MaxLimit {
		t.Errorf("%d affinities, want %d", len(a.Affinities), boost.MaxLimit)
	}
	if _, err := p.search("(select id, relevance, color facet0, color facet1, color facet2, brand facet3, brand facet4 from mixed)", a); err != nil {
		t.Errorf("a hundred affinities: %v", err)
	}
}
