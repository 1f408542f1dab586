// Command vulnerabilities looks for known vulnerabilities in what is released and deployed:
// in the command line tool, and in a program with all functions.
//
// It builds both with the Go at hand, and judges the standard library by the version that
// go.mod's toolchain names, with which releases and functions are built: of another patch
// than the one at hand it knows all that the database says, without compiling everything
// once more. The database of the Go project is a module, so all that it needs comes by the
// module proxy. A vulnerability counts if its code is linked: the exit code is 1 then, and 0
// if there is none.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/mod/modfile"

	"github.com/affinityengine/affinity/terraform"
)

const (
	database = "golang.org/x/vulndb"
	checker  = "golang.org/x/vuln/cmd/govulncheck@v1.9.0"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	toolchain := flag.String("go", "", "judge this version of the standard library, such as go1.26.8 (default: toolchain of go.mod)")
	flag.Parse()
	err := run(ctx, *toolchain)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "vulnerabilities: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, toolchain string) error {
	if toolchain == "" {
		text, err := os.ReadFile("go.mod")
		if err != nil {
			return fmt.Errorf("run it at the root of the checkout: %w", err)
		}
		file, err := modfile.Parse("go.mod", text, nil)
		if err != nil {
			return err
		}
		if file.Toolchain == nil {
			return errors.New("go.mod names no toolchain, with which releases and functions are built")
		}
		toolchain = file.Toolchain.Name
	}
	dir, err := os.MkdirTemp("", "affinity-vulnerabilities-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	module, err := newest(ctx)
	if err != nil {
		return err
	}
	entries, err := index(filepath.Join(module, "data", "osv"), filepath.Join(dir, "db"))
	if err != nil {
		return fmt.Errorf("read the database %s: %w", filepath.Base(module), err)
	}
	fmt.Printf("%s has %d entries; the standard library is that of %s\n", filepath.Base(module), entries, toolchain)
	programs, err := build(ctx, dir)
	if err != nil {
		return err
	}
	var faults []error
	for _, program := range programs {
		cmd := exec.CommandContext(ctx, "go", "run", checker, "-db", "file://"+filepath.Join(dir, "db"),
			"-mode", "binary", "-format", "json", program)
		cmd.Stderr = os.Stderr
		cmd.Env = append(os.Environ(), "GOFLAGS=")
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("check %s: %w", filepath.Base(program), err)
		}
		linked, err := linked(out, strings.TrimPrefix(toolchain, "go"))
		if err != nil {
			return fmt.Errorf("read the findings in %s: %w", filepath.Base(program), err)
		}
		fmt.Printf("%s: %d known vulnerabilities\n", filepath.Base(program), len(linked))
		for _, what := range linked {
			fmt.Printf("  %s\n", what)
		}
		if len(linked) > 0 {
			faults = append(faults, fmt.Errorf("%s has %d known vulnerabilities: raise the modules, or toolchain in go.mod",
				filepath.Base(program), len(linked)))
		}
	}
	return errors.Join(faults...)
}

// newest returns the folder of the newest database or, where no proxy answers, that of the
// newest one which was downloaded before.
func newest(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", database+"@latest").Output()
	var module struct{ Dir, Error string }
	if failed := json.Unmarshal(out, &module); failed == nil && module.Dir != "" {
		return module.Dir, nil
	}
	err = errors.Join(err, errors.New(module.Error))
	cache, failed := exec.CommandContext(ctx, "go", "env", "GOMODCACHE").Output()
	if failed != nil {
		return "", failed
	}
	dirs, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(cache)), filepath.FromSlash(database)+"@*"))
	if len(dirs) == 0 {
		return "", fmt.Errorf("download %s: %w", database, err)
	}
	slices.Sort(dirs)
	fmt.Fprintf(os.Stderr, "warning: the newest database cannot be downloaded: %v\n", err)
	return dirs[len(dirs)-1], nil
}

// functions is a program with all functions, as the Go buildpack makes one of each.
const functions = "package main\n\nimport " +
	"(\n\t\"log\"\n\n%s\t\"github.com/GoogleCloudPlatform/functions-framework-go/funcframework\"\n)\n\n" +
	"func main() { log.Fatal(funcframework.Start(\"8080\")) }\n"

// build builds the programs into a folder.
func build(ctx context.Context, dir string) ([]string, error) {
	deployment, err := terraform.ReadDeployment()
	if err != nil {
		return nil, err
	}
	imports := ""
	for _, fn := range deployment.Functions {
		imports += fmt.Sprintf("\t_ %q\n", "github.com/affinityengine/affinity/functions/"+fn.Name)
	}
	// The program is not part of the module: an overlay puts it there for the build.
	source, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	all := filepath.Join(root, "scripts", "vulnerabilities", "all", "main.go")
	mapped, err := json.Marshal(map[string]any{"Replace": map[string]string{all: source}})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.WriteFile(source, fmt.Appendf(nil, functions, imports), 0o600),
		os.WriteFile(overlay, mapped, 0o600)); err != nil {
		return nil, err
	}
	programs := []string{filepath.Join(dir, "affinity"), filepath.Join(dir, "functions")}
	for i, pkg := range []string{"./scripts/affinity", "./scripts/vulnerabilities/all"} {
		cmd := exec.CommandContext(ctx, "go", "build", "-overlay="+overlay, "-trimpath",
			"-tags=disable_grpc_modules", "-buildvcs=false", "-o", programs[i], pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("build %s: %w", pkg, err)
		}
	}
	return programs, nil
}
