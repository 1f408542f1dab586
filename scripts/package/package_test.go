package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/terraform"
)

func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := command(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

var packOnce = sync.OnceValues(func() (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := packAll(context.Background(), io.Discard, dir, "", nil); err != nil {
		return nil, err
	}
	zips := map[string][]byte{}
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	for _, path := range paths {
		data, readErr := os.ReadFile(path)
		zips[filepath.Base(path)], err = data, errors.Join(err, readErr)
	}
	return zips, err
})

// packed are the functions and their zips.
func packed(t *testing.T) ([]terraform.Function, map[string][]byte) {
	t.Helper()
	deployment, err := terraform.ReadDeployment()
	if err != nil {
		t.Fatal(err)
	}
	files, err := packOnce()
	if err != nil {
		t.Fatal(err)
	}
	zips := map[string][]byte{}
	for _, fn := range deployment.Functions {
		zips[fn.Name] = files[fn.Name+".zip"]
	}
	if len(files) != 2*len(zips)+1 { // a list of each, and the release
		t.Fatalf("%d files of %d functions", len(files), len(zips))
	}
	return deployment.Functions, zips
}

// The smallest zip of a function with variables is built, started and asked as on
// the platform. `package check` does so with all zips.
func TestZipBuildsAndAnswers(t *testing.T) {
	must.Start(t, must.Builds)
	functions, zips := packed(t)
	fn := functions[0]
	for _, other := range functions {
		if needsVariables(other) && (!needsVariables(fn) || len(zips[other.Name]) < len(zips[fn.Name])) {
			fn = other
		}
	}
	program, err := build(t.Context(), zips[fn.Name], t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	lacks, err := ask(t.Context(), program, fn)
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(lacks, " "); !strings.Contains(all, "BIGTABLE_INSTANCE") || !strings.Contains(all, "FIRESTORE_PROJECT") {
		t.Errorf("%s lacks %s", fn.Name, all)
	}

	fn.EntryPoint = "Other"
	if _, err := ask(t.Context(), program, fn); err == nil || !strings.Contains(err.Error(), "the program ended") {
		t.Errorf("started as a function that it does not register: %v", err)
	}
}

func TestZipsAreReproducible(t *testing.T) {
	functions, zips := packed(t)
	for i, fn := range functions {
		if i%3 != 0 {
			continue
		}
		// A zip can be made again from its own files, in another folder.
		elsewhere := filepath.Join(t.TempDir(), "other", "folder")
		if err := unpack(zips[fn.Name], elsewhere); err != nil {
			t.Fatal(err)
		}
		again, err := pack(t.Context(), elsewhere, fn.Name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again[0].data, zips[fn.Name]) {
			t.Errorf("the zip of %s differs when it is made from its own files", fn.Name)
		}
	}
}

// A change of a package changes the zips of the functions that link it, and so
// only these are deployed again.
func TestChangedZips(t *testing.T) {
	functions, zips := packed(t)
	root := t.TempDir() // all zips together hold the sources of all functions
	for _, fn := range functions {
		if err := unpack(zips[fn.Name], root); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{
		"shared/job/kinds/migration": "admin console worker",
		"shared/job/kinds/recompute": "admin console strategies worker",
		"shared/score/explain":       "console profiles",
	}
	for pkg := range want {
		paths, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no Go files in %s: %v", pkg, err)
		}
		source, err := os.ReadFile(paths[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(paths[0], append(source, "\n// A comment.\n"...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	again, err := pack(t.Context(), root, namesOf(functions)...)
	if err != nil {
		t.Fatal(err)
	}
	changed := map[string][]string{}
	for i, fn := range functions {
		before, after := contents(t, zips[fn.Name]), contents(t, again[i].data)
		folders := map[string]bool{}
		for file := range after {
			if before[file] != after[file] {
				folders[path.Dir(file)] = true
			}
		}
		for folder := range folders {
			changed[folder] = append(changed[folder], fn.Name)
		}
		if bytes.Equal(zips[fn.Name], again[i].data) != (len(folders) == 0) || len(before) != len(after) {
			t.Errorf("%s: %d files, %d before; folders with changes: %v", fn.Name, len(after), len(before), folders)
		}
	}
	got := map[string]string{}
	for pkg, names := range changed {
		slices.Sort(names)
		got[pkg] = strings.Join(names, " ")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("functions whose zips a comment in a package changes (-want +got):\n%s", diff)
	}
}

// contents returns the files of a zip.
func contents(t *testing.T, data []byte) map[string]string {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(text)
	}
	return files
}

func TestZipContents(t *testing.T) {
	functions, zips := packed(t)
	for _, fn := range functions {
		r, err := zip.NewReader(bytes.NewReader(zips[fn.Name]), int64(len(zips[fn.Name])))
		if err != nil {
			t.Fatal(err)
		}
		last := ""
		for _, f := range r.File {
			if f.Name <= last {
				t.Errorf("%s: %s comes after %s", fn.Name, f.Name, last)
			}
			last = f.Name
			if f.Modified.Year() != 1980 || f.Mode() != 0o644 {
				t.Errorf("%s: %s is of %v, with mode %v", fn.Name, f.Name, f.Modified, f.Mode())
			}
			if strings.HasSuffix(f.Name, "_test.go") || strings.HasPrefix(f.Name, "scripts/") ||
				filepath.Base(f.Name) == "README.md" && fn.Name != "docs" {
				t.Errorf("%s: %s is not needed", fn.Name, f.Name)
			}
			// Only console makes the requests of other functions, in its process.
			if folder, ok := strings.CutPrefix(f.Name, "functions/"); ok && fn.Name != "console" && !strings.HasPrefix(folder, fn.Name+"/") {
				t.Errorf("%s: %s belongs to another function", fn.Name, f.Name)
			}
		}
		content := contents(t, zips[fn.Name])
		parts := map[string]string{
			"function.go":          `_ "github.com/affinityengine/affinity/functions/` + fn.Name + `"`,
			"go.mod":               "module github.com/affinityengine/affinity\n",
			"go.sum":               "cloud.google.com/go/bigtable ",
			"LICENSE":              "Apache License",
			"THIRD_PARTY_LICENSES": "github.com/GoogleCloudPlatform/functions-framework-go: LICENSE",
		}
		if needsVariables(fn) {
			parts["terraform/bigtable.json"] = terraform.Bigtable // embedded
		}
		if fn.Name == "console" { // embedded
			parts["functions/console/templates/layout.html"] = "<!doctype html>"
			parts["functions/console/static/htmx.min.js"] = "htmx"
			parts["functions/console/static/console.css"] = "{"
			parts["functions/console/static/icons.svg"] = "<svg"
		}
		for name, part := range parts {
			if !strings.Contains(content[name], part) {
				t.Errorf("%s: %s does not hold %q: %q", fn.Name, name, part, content[name])
			}
		}
	}
}

func TestBuildRefusesWhatThePlatformRefuses(t *testing.T) {
	const imports = "\nimport _ \"github.com/GoogleCloudPlatform/functions-framework-go/functions\"\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no package at the root": {map[string]string{"functions/a/a.go": "package a" + imports}, "unable to find Go package"},
		"two packages":           {map[string]string{"a.go": "package a" + imports, "b.go": "package b"}, "multiple packages in user code directory: a, b"},
		"a program":              {map[string]string{"a.go": "package main" + imports}, "cannot be imported"},
		"nothing registered":     {map[string]string{"a.go": "package a"}, "would not be registered"},
		"no Go":                  {map[string]string{"a.go": "package"}, "a.go:1:8"},
		"a module without a dot": {map[string]string{"a.go": "package a" + imports, "go.mod": "module affinity/functions\n"}, "must contain a dot"},
		"a work space": {map[string]string{"a.go": "package a" + imports, "go.mod": "module example.com/a\n", "b/go.mod": "module example.com/b\n",
			"go.work": "go 1.26.0\nuse (\n\t.\n\t./b\n)\n"}, "no go.work"},
		"a path that leads out": {map[string]string{"../a.go": "package a" + imports}, "outside"},
	} {
		files := map[string][]byte{}
		for path, text := range c.files {
			files[path] = []byte(text)
		}
		data, err := archive(files)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := build(t.Context(), data, t.TempDir()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := build(t.Context(), []byte("PK"), t.TempDir()); err == nil {
		t.Error("a truncated zip is built")
	}
}

func TestMissingVariables(t *testing.T) {
	fn := terraform.Function{Env: []string{"TASKS_QUEUE", "WORKER_URL"}}
	for log, fault := range map[string]string{
		`{"message":"m","error":"\"TASKS_QUEUE\" and \"WORKER_URL\" are not set"}` + "\n": "",
		`{"message":"m","error":"\"TASKS_QUEUE\" and \"OTHER\" are not set"}`:             "set OTHER",
		`{"message":"not now"}`: "want the variables",
		"busy":                  "want the variables",
	} {
		lacks, err := lacking([]byte(log), fn)
		if fault == "" && (err != nil || strings.Join(lacks, " ") != "TASKS_QUEUE WORKER_URL") || fault != "" && (err == nil || !strings.Contains(err.Error(), fault)) {
			t.Errorf("%s: %v, %v, want %q", log, lacks, err, fault)
		}
	}
	for _, c := range []struct {
		status int
		body   string
		ok     bool
	}{
		{503, `{"status":503,"message":"not configured"}`, true},
		{503, `busy`, false},
		{500, `{"status":503,"message":"not configured"}`, false},
		{200, `{"status":200,"message":"OK"}`, false},
	} {
		if err := answered(c.status, []byte(c.body), fn); (err == nil) != c.ok {
			t.Errorf("%d %s: %v", c.status, c.body, err)
		}
	}
	// A function that needs no variables answers at once.
	for status, ok := range map[int]bool{200: true, 404: true, 500: false, 503: false} {
		for _, fn := range []terraform.Function{{}, {Env: []string{logProject}}} {
			if err := answered(status, nil, fn); (err == nil) != ok {
				t.Errorf("%d of a function with the variables %q: %v", status, fn.Env, err)
			}
		}
	}
}

func TestWrongArguments(t *testing.T) {
	dir := t.TempDir()
	for want, args := range map[string][]string{
		`terraform/functions.json has no function "unknown", only ingest,`: {"--out", dir, "unknown"},
		`no function "ingest.zip"`:                   {"check", "--out", dir, "ingest.zip"},
		"`go run ./scripts/package ingest` makes it": {"check", "--out", dir, "ingest"},
		"unknown flag":                               {"--output", dir},
	} {
		if out, err := run(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q; %s", args, err, want, out)
		}
	}
	t.Chdir(dir)
	if _, err := run(t, "ingest"); err == nil || !strings.Contains(err.Error(), "run it in the checkout") {
		t.Errorf("outside of a module: %v", err)
	}
}
