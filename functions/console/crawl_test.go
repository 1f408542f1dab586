package console_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/command/local"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// demoStack is the engine of a demo in a test.
type demoStack struct{ *stack.Stack }

func (d demoStack) URL() string { return d.Stack.URL }

func (d demoStack) ConsoleLink(app, key string) string {
	return d.Stack.ConsoleLink(stack.App{ID: app, Key: key})
}

// said collects what a command prints, until it says something.
type said struct {
	mu    sync.Mutex
	text  bytes.Buffer
	until string
	done  chan struct{}
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := strings.Contains(s.text.String(), s.until)
	n, err := s.text.Write(p)
	if !before && strings.Contains(s.text.String(), s.until) {
		close(s.done)
	}
	return n, err
}

// demo makes the site that of the command demo, which serves, and whose jobs are done.
func (s *site) demo(t *testing.T) {
	t.Helper()
	out, ended := &said{until: "until Ctrl-C", done: make(chan struct{})}, make(chan error, 1)
	tool := &command.Tool{Out: out, Err: io.Discard, Retry: client.Retry{First: time.Millisecond, Total: 10 * time.Second}}
	cmd := local.Demo(tool, func(ctx context.Context, o local.Options) (local.RunningStack, error) {
		var err error
		s.stack, err = stack.Start(ctx, stack.Options{Apps: []stack.App{{ID: o.Apps[0].ID, Key: o.Apps[0].Key}},
			Operator: o.Operator, ConfigTTL: 100 * time.Millisecond, RetentionDays: o.RetentionDays})
		return demoStack{s.stack}, err
	})
	cmd.SetArgs([]string{"--app", "shop:" + key})
	ctx, stop := context.WithCancel(context.Background())
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	select {
	case <-out.done:
	case err := <-ended:
		stop()
		t.Fatalf("the demo ended: %v", err)
	}
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	var err error
	s.engine, err = client.New(client.Config{URL: s.stack.URL, App: "shop", Key: key})
	s.must(err)
	s.built()
	s.eventually(func() bool {
		tests, err := s.engine.Jobs().Backtests(context.Background())
		s.must(err)
		return len(tests.Backtests) > 0 && tests.Backtests[0].State == api.JobDone
	})
}

var link = regexp.MustCompile(`(?:href|hx-get)="(/[^"]*)"`)

// crawl follows links from the first page, and returns one address of each page that it finds.
func (p *person) crawl() []string {
	p.t.Helper()
	found, paths := map[string]bool{}, []string{"/"}
	for i := 0; i < len(paths); i++ {
		answer, body := p.send("GET", paths[i], nil)
		if answer.StatusCode != http.StatusOK {
			p.t.Errorf("%s: %d", paths[i], answer.StatusCode)
		}
		for _, m := range link.FindAllStringSubmatch(body, -1) {
			u, err := url.Parse(strings.ReplaceAll(strings.ReplaceAll(m[1], "&amp;", "&"), "&#43;", "+"))
			p.must(err)
			kind := kindOf(u)
			if kind == "" || found[kind] {
				continue
			}
			found[kind] = true
			paths = append(paths, u.RequestURI())
		}
	}
	return paths
}

// kindOf is the page that an address is of, whatever it is about; "" for what is no page.
func kindOf(u *url.URL) string {
	parts := strings.Split(u.EscapedPath(), "/")
	if slices.Contains([]string{"static", "open"}, parts[min(2, len(parts)-1)]) || strings.HasSuffix(u.Path, "/file") ||
		len(parts) > 1 && parts[1] != "console" && u.Path != "/" {
		return ""
	}
	if len(parts) > 3 && parts[2] != "strategy" {
		parts[3] = "NAME"
	} else if len(parts) > 4 {
		parts[4] = "NAME"
	}
	return strings.Join(parts, "/")
}
