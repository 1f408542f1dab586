package engines

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/must"
)

// received is a request that the engine got.
type received struct {
	path, body string
}

// services plays Affinity and a search engine. Users other than user-1 have no
// boost: unknown has no events, refused is one too many, and slow gets no answer.
func services(t *testing.T) (base string, got func() []received) {
	t.Helper()
	requests := make(chan received, 1000)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /1/boosts", func(w http.ResponseWriter, r *http.Request) {
		a, err := render(r.URL.Query())
		if err != nil || r.Header.Get("x-algolia-application-id") != "shop" || r.Header.Get("x-algolia-api-key") != "key" {
			t.Errorf("%s with %v: %v", r.URL, r.Header, err)
		}
		switch user := r.Header.Get("x-algolia-usertoken"); user {
		case "user-1":
		case "unknown":
			a.Affinities, a.Query = []api.BoostAffinity{}, map[string]any{}
		case "slow":
			<-r.Context().Done()
			return
		case "refused":
			w.WriteHeader(http.StatusTooManyRequests)
			return
		default:
			t.Errorf("a boost of the user %q", user)
		}
		if err := json.NewEncoder(w).Encode(a); err != nil {
			t.Error(err)
		}
	})
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		requests <- received{r.URL.Path, string(body)}
		if _, err := io.WriteString(w, "{}"); err != nil {
			t.Error(err)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL, func() []received {
		var list []received
		for len(requests) > 0 {
			list = append(list, <-requests)
		}
		return list
	}
}

// users search on every page, the first with a boost. The last one is nobody yet, for
// whom no program asks.
var users = []string{"user-1", "unknown", "refused", ""}

// check compares what the engine got with the pages: of each page a request for
// each user, and then what boost answers without Affinity's answer.
func check(t *testing.T, list []page, got []received) {
	t.Helper()
	if len(got) != len(list)*len(users)+1 {
		t.Fatalf("%d requests, want %d", len(got), len(list)*len(users)+1)
	}
	for i := range list {
		p := &list[i]
		for at, user := range users {
			r := got[i*len(users)+at]
			word := "plain"
			if at == 0 {
				word = "request"
				if *rewrite {
					p.replace(t, "json", word, json.RawMessage(r.body))
				}
			}
			want, _ := p.find("json", word)
			same(t, p.name+": the request for "+user, r.body, json.RawMessage(want))
			if _, fence := p.find("json", "request"); fence != "" && fence != "POST "+r.path {
				t.Errorf("%s: the request goes to %s, want %s", p.name, r.path, fence)
			}
		}
	}
	if got := got[len(got)-1]; got.path != "/slow" || got.body != `{"affinities":[],"query":{}}` {
		t.Errorf("without an answer: %+v", got)
	}
}

// folder returns a new folder, and a function that writes its files.
func folder(t *testing.T) (dir string, write func(name, text string)) {
	t.Helper()
	dir = t.TempDir()
	return dir, func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// patient replaces a timeout, so that a slow machine has the same result.
func patient(t *testing.T, text, timeout, longer string) string {
	t.Helper()
	if !strings.Contains(text, timeout) {
		t.Fatalf("boost has no %s", timeout)
	}
	return strings.Replace(text, timeout, longer, 1)
}

// run runs a program of the pages and returns what its engine got.
func run(t *testing.T, dir, program string, arguments ...string) []received {
	t.Helper()
	base, got := services(t)
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off", "AFFINITY_URL="+base, "AFFINITY_KEY=key", "ENGINE_URL="+base)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return got()
}

// The middleware of each page sends the request that the page shows, and without
// a boost the plain one.
func TestPagesRunInJavaScript(t *testing.T) {
	must.Start(t, must.Clients)
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("Node is not installed, so the programs on the pages are not tested: %v", err)
	}
	dir, write := folder(t)
	var main strings.Builder
	var list []page
	for _, p := range readPages(t) {
		if p.name == "README" {
			write("slow.mjs", p.all("js"))
			write("boost.mjs", patient(t, p.all("js"), "AbortSignal.timeout(100)", "AbortSignal.timeout(600_000)"))
			continue
		}
		list = append(list, p)
		write(p.name+".mjs", p.all("js"))
		fmt.Fprintf(&main, "import { search as %s } from './%s.mjs';\n", p.name, p.name)
	}
	main.WriteString(`import { boost as slow } from './slow.mjs';
import { post } from './boost.mjs';

// pool stands for a Pool of pg.
const pool = { query: (text, values) => post('/pool', { text, values }) };
`)
	for _, p := range list {
		words := "'red phone'"
		if p.name == "qdrant" {
			words = "[0.1, 0.2]"
		}
		for _, u := range users {
			fmt.Fprintf(&main, "await %s('%s', %s, pool);\n", p.name, u, words)
		}
	}
	main.WriteString("await post('/slow', await slow('slow', 'engine=solr&impact=50'));\n")
	write("main.mjs", main.String())
	check(t, list, run(t, dir, node, "main.mjs"))
}

// goMain calls the functions of the pages.
const goMain = `
// driverConn is a database that posts statements to the engine.
type driverConn struct{}

func (driverConn) Prepare(string) (driver.Stmt, error) { return nil, driver.ErrSkip }
func (driverConn) Close() error { return nil }
func (driverConn) Begin() (driver.Tx, error) { return nil, driver.ErrSkip }
func (driverConn) Connect(context.Context) (driver.Conn, error) { return driverConn{}, nil }
func (driverConn) Driver() driver.Driver { return nil }

type noRows struct{}

func (noRows) Columns() []string { return nil }
func (noRows) Close() error { return nil }
func (noRows) Next([]driver.Value) error { return io.EOF }

func (driverConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	values := []any{}
	for _, a := range args {
		values = append(values, a.Value)
	}
	_, err := post(ctx, "/pool", map[string]any{"text": text, "values": values})
	return noRows{}, err
}

func must(_ any, err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	ctx := context.Background()
	db := sql.OpenDB(driverConn{})
	_ = db
`

// imports are the packages that the programs on the pages may use.
var imports = []string{"bytes", "context", "database/sql", "database/sql/driver", "encoding/json", "fmt", "io", "maps", "net/http", "os", "time"}

func goFile(body string) string {
	text := "package main\n\nimport (\n"
	for _, i := range imports {
		if regexp.MustCompile(`\b` + filepath.Base(i) + `\.[A-Z]`).MatchString(body) {
			text += strconv.Quote(i) + "\n"
		}
	}
	return text + ")\n\n" + body
}

// All pages are one program.
func TestPagesRunInGo(t *testing.T) {
	t.Parallel()
	dir, write := folder(t)
	write("go.mod", "module pages\n\ngo 1.26.0\n")
	main := goMain
	var list []page
	for _, p := range readPages(t) {
		text := p.all("go")
		if p.name == "README" {
			write("boost.go", goFile(patient(t, text, "100*time.Millisecond", "10*time.Minute")))
			start := strings.Index(text, "func boost(")
			slow := text[start : start+strings.Index(text[start:], "\n}\n")+3]
			write("slow.go", goFile(strings.Replace(slow, "func boost(", "func slow(", 1)))
			continue
		}
		list = append(list, p)
		write(p.name+".go", goFile(text))
		arguments := `, "red phone"`
		switch p.name {
		case "minisearch":
			arguments = ""
		case "qdrant":
			arguments = ", []float64{0.1, 0.2}"
		case "postgres":
			arguments += ", db"
		}
		for _, u := range users {
			main += fmt.Sprintf("must(search%s%s(ctx, %q%s))\n", strings.ToUpper(p.name[:1]), p.name[1:], u, arguments)
		}
	}
	main += `if b := slow(ctx, "slow", "engine=solr&impact=50"); b.Affinities == nil && b.Query == nil {
		must(post(ctx, "/slow", map[string]any{"affinities": []any{}, "query": map[string]any{}}))
	}
}
`
	write("main.go", goFile(main))
	check(t, list, run(t, dir, "go", "run", "."))
}
