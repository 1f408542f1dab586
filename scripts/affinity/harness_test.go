package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli/clitest"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/command/admin"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// ran is the outcome of one command line.
type ran struct {
	code     int
	out, err string
}

// affinity runs a command line in process, with short waits and without a local
// stack.
func affinity(t *testing.T, stdin string, args ...string) ran {
	t.Helper()
	return affinityWith(t, t.Context(), stdin, func(*program) {}, args...)
}

func affinityWith(t *testing.T, ctx context.Context, stdin string, change func(*program), args ...string) ran {
	t.Helper()
	var out, err output
	tl := &program{Tool: &command.Tool{
		In: strings.NewReader(stdin), Out: &out, Err: &err,
		Retry:      client.Retry{First: time.Millisecond, Max: 4 * time.Millisecond, Total: 10 * time.Second},
		WatchEvery: 10 * time.Millisecond, ConfigTTL: 20 * time.Millisecond,
	}, open: admin.Openers{
		Config: func(context.Context, admin.Databases) (admin.ConfigStore, error) {
			return admin.ConfigStore{Store: config.NewMemory(), Close: func() error { return nil }}, nil
		},
		Usage: func(context.Context, admin.Bigtables) (admin.UsageTable, error) {
			return nil, errors.New("no Bigtable here")
		},
		Details: func(context.Context, admin.Bigtables) (admin.JobDetails, error) {
			return nil, errors.New("no Bigtable here")
		},
		Log: func(context.Context, admin.Bigtables) (admin.ChangeLog, error) { return &memoryLog{}, nil },
	}}
	change(tl)
	code := tl.run(ctx, args)
	return ran{code, out.String(), err.String()}
}

// output is what a command has printed. What a local stack has started may log after it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// wants fails the test unless the exit code is this one and each text was printed,
// on stdout or stderr.
func (r ran) wants(t *testing.T, code int, texts ...string) {
	t.Helper()
	clitest.Result{Code: r.code, Out: r.out, Err: r.err}.Wants(t, code, texts...)
}

// file writes a file of these lines and returns its path.
func file(t *testing.T, name string, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return path
}

// zipped returns the text as gzip.
func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	must(t, w.Close())
	return b.String()
}

// startEngine starts a whole engine with app demo, and closes it with the test.
func startEngine(t *testing.T, opts stack.Options) *stack.Stack {
	t.Helper()
	opts.Apps = []stack.App{{ID: "demo", Key: "demokey"}}
	if opts.ConfigTTL == 0 {
		opts.ConfigTTL = 100 * time.Millisecond // as of an engine that the commands start
	}
	s, err := stack.Start(t.Context(), opts)
	must(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
