package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/affinityengine/affinity/shared/local/ports"
	"github.com/affinityengine/affinity/terraform"
)

// waitTimeout is how long a function may take from its start to its answer.
const waitTimeout = 30 * time.Second

// check builds the zip of a function, starts it without variables, and returns the
// variables that it says it lacks.
func check(ctx context.Context, path string, fn terraform.Function) ([]string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s does not exist: `go run ./scripts/package %s` makes it", path, fn.Name)
	}
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "affinity-"+fn.Name+"-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program, err := build(ctx, data, dir)
	if err != nil {
		return nil, err
	}
	return ask(ctx, program, fn)
}

// ask starts a function's program as the platform does, but without a
// configuration, and returns the variables that its log says it lacks.
func ask(ctx context.Context, program string, fn terraform.Function) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = []string{"FUNCTION_TARGET=" + fn.EntryPoint, "PORT=" + port}
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second // then kill it
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the function: %w", err)
	}
	ended := make(chan struct{})
	asking, stop := context.WithCancelCause(ctx)
	go func() {
		defer close(ended)
		stop(fmt.Errorf("the program ended: %w", cmd.Wait()))
	}()
	err = questions(asking, "http://127.0.0.1:"+port, fn)
	if err != nil && asking.Err() != nil {
		err = context.Cause(asking)
	}
	cancel()
	<-ended
	var lacks []string
	if err == nil && needsVariables(fn) {
		lacks, err = lacking(said.Bytes(), fn)
	}
	if err != nil {
		return nil, fmt.Errorf("started as %s: %w\n%s", fn.EntryPoint, err, bytes.TrimSpace(said.Bytes()))
	}
	return lacks, nil
}

// questions sends a GET and a POST to a function.
func questions(ctx context.Context, url string, fn terraform.Function) error {
	if err := listening(ctx, url); err != nil {
		return err
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		req, err := http.NewRequestWithContext(ctx, method, url, nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			return fmt.Errorf("read the answer to %s: %w", method, err)
		}
		if err := answered(res.StatusCode, body, fn); err != nil {
			return fmt.Errorf("%s / is answered %d %s: %w", method, res.StatusCode, bytes.TrimSpace(body), err)
		}
	}
	return nil
}

var quotedVariable = regexp.MustCompile(`"([A-Z][A-Z0-9_]+)"`)

// logProject names the project of a function's log lines. A function works without
// it.
const logProject = "GOOGLE_CLOUD_PROJECT"

// needsVariables reports whether a function answers 503 without its variables.
func needsVariables(fn terraform.Function) bool {
	return slices.ContainsFunc(fn.Variables(), func(name string) bool { return name != logProject })
}

// answered checks the answer of a function that has no variables: it must say that it
// is not configured, and not why, because strangers read it.
func answered(status int, body []byte, fn terraform.Function) error {
	if !needsVariables(fn) {
		if status >= http.StatusInternalServerError {
			return errors.New("want an answer: the function needs no variables")
		}
		return nil
	}
	var answer struct {
		Status  int
		Message string
	}
	if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusServiceUnavailable ||
		answer.Status != status {
		return errors.New("want 503")
	}
	return nil
}

// lacking returns the variables that a function's log says are missing. The
// deployment must set all of them.
func lacking(log []byte, fn terraform.Function) ([]string, error) {
	var causes string
	for line := range bytes.Lines(log) {
		var entry struct{ Error string }
		if json.Unmarshal(line, &entry) == nil {
			causes += entry.Error + "\n"
		}
	}
	var lacks, unknown []string
	for _, match := range quotedVariable.FindAllStringSubmatch(causes, -1) {
		lacks = append(lacks, match[1])
		if !slices.Contains(fn.Variables(), match[1]) {
			unknown = append(unknown, match[1])
		}
	}
	if len(lacks) == 0 {
		return nil, errors.New("want the variables that are missing")
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("terraform/functions.json does not have the deployment set %s", strings.Join(unknown, ", "))
	}
	return lacks, nil
}

// listening waits until a server listens at a URL.
func listening(ctx context.Context, url string) error {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(url, "http://"))
		if err == nil {
			return conn.Close()
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("no server listens: %w", err)
		}
	}
}

func freePort() (string, error) {
	address, err := ports.Free()
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(address)
	return port, err
}
