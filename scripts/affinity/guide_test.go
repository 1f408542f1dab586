//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/local/ports"
)

var rewrite = flag.Bool("rewrite", false, "write what the commands of the README and of guides print into the pages")

// A guide is a page whose console blocks are run: a line that begins with `$ ` is a
// command, the lines behind it are what it prints. A line `...` stands for any
// lines, and times, durations, rates, ids and versions may be others.
//
// All commands of a page run in one shell, in an empty folder. `affinity` is this
// test binary, and the ports of an engine, 8080 and 9090, and those of another one, 8081 and 9091, are free ones.
type guide struct {
	t     *testing.T
	port  string
	free  []string // pairs of a port of the page and the one in its place, each behind a colon
	shell *exec.Cmd
	in    *os.File
	lines chan string
}

// step is a command of a guide and what it prints. Blocks of lists are indented.
type step struct {
	indent, command string
	prints          []string
}

// text returns the step as a page shows it.
func (s step) text(prints []string) []byte {
	lines := append(strings.Split("$ "+s.command, "\n"), prints...)
	return []byte(s.indent + strings.Join(lines, "\n"+s.indent) + "\n")
}

// runGuide runs the console blocks of a page. Pages whose commands start no engine
// use the one at url. Its shell and its engine run until the end of the test.
func runGuide(t *testing.T, path, url string) *guide {
	t.Helper()
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is missing, so the commands of %s are not tested", tool, path)
		}
	}
	text, err := os.ReadFile(path)
	must(t, err)
	steps := stepsOf(string(text))
	if len(steps) == 0 {
		t.Fatalf("%s has no commands", path)
	}
	g := startShell(t, strings.TrimPrefix(url, "http://127.0.0.1:"))
	var page []byte // up to the step
	for _, s := range steps {
		got, diff := g.run(s)
		if diff != "" && !*rewrite {
			t.Fatalf("$ %s\n%s", s.command, diff)
		}
		before, after, _ := bytes.Cut(text, s.text(s.prints))
		page, text = append(page, before...), after
		if diff == "" {
			got = s.prints
		}
		page = append(page, s.text(got)...)
	}
	if *rewrite {
		must(t, os.WriteFile(path, append(page, text...), 0o600))
	}
	return g
}

var consoleBlock = regexp.MustCompile("(?ms)^( *)```console\n(.*?)^ *```$")

// stepsOf returns the commands of a page. Blocks without one show what was printed
// elsewhere.
func stepsOf(page string) (steps []step) {
	for _, m := range consoleBlock.FindAllStringSubmatch(page, -1) {
		var s *step
		for line := range strings.Lines(m[2]) {
			line = strings.TrimPrefix(strings.TrimSuffix(line, "\n"), m[1])
			switch command, ok := strings.CutPrefix(line, "$ "); {
			case s != nil && unfinished(s.command):
				s.command += "\n" + line
			case ok:
				steps = append(steps, step{indent: m[1], command: command})
				s = &steps[len(steps)-1]
			case s != nil:
				s.prints = append(s.prints, line)
			}
		}
	}
	return steps
}

var hereDocument = regexp.MustCompile(`<<'?([A-Z]+)'?`)

// unfinished reports whether the shell would read on: in quotes, in a here document
// or behind a backslash.
func unfinished(command string) bool {
	if m := hereDocument.FindStringSubmatch(command); m != nil {
		return !strings.HasSuffix(command, "\n"+m[1])
	}
	return strings.HasSuffix(command, `\`) || strings.Count(command, "'")%2 == 1
}

// startShell starts the shell. Port is that of the engine, "" for one that is free
// now.
func startShell(t *testing.T, port string) *guide {
	t.Helper()
	if port == "" {
		port = freePort(t)
	}
	home := t.TempDir()
	bin, work := filepath.Join(home, "bin"), filepath.Join(home, "work")
	for _, dir := range []string{bin, work} {
		must(t, os.Mkdir(dir, 0o700))
	}
	self, err := filepath.Abs(os.Args[0])
	must(t, err)
	script := fmt.Sprintf("#!/bin/sh\ncase $1 in up|demo) set -- \"$@\" --addr 127.0.0.1:%s ;; esac\nexport %s=1\nexec %s \"$@\"\n", port, asTool, self)
	must(t, os.WriteFile(filepath.Join(bin, "affinity"), []byte(script), 0o700))
	in, stdin, err := os.Pipe()
	must(t, err)
	out, stdout, err := os.Pipe()
	must(t, err)
	free := []string{":8080", ":" + port}
	for _, name := range []string{":9090", ":8081", ":9091"} {
		free = append(free, name, ":"+freePort(t))
	}
	g := &guide{t: t, port: port, free: free, in: stdin, lines: make(chan string, 1000), shell: exec.Command("bash", "--norc", "-O", "expand_aliases")}
	g.shell.Stdin, g.shell.Stdout, g.shell.Stderr, g.shell.Dir = in, stdout, stdout, work
	g.shell.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + home, "TZ=UTC", "LC_ALL=C.UTF-8", "TMPDIR=" + os.TempDir(), command.URLVariable + "=http://127.0.0.1:" + port, "ALGOLIA_URL=" + os.Getenv("ALGOLIA_URL")}
	g.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(t, g.shell.Start())
	_ = in.Close()
	_ = stdout.Close()
	t.Cleanup(func() {
		_ = syscall.Kill(-g.shell.Process.Pid, syscall.SIGKILL) // engines that the page started too
		_ = g.shell.Wait()
		_ = stdin.Close()
	})
	go func() {
		defer close(g.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			g.lines <- s.Text()
		}
	}()
	return g
}

func freePort(t *testing.T) string {
	t.Helper()
	address, err := ports.Free()
	must(t, err)
	_, port, err := net.SplitHostPort(address)
	must(t, err)
	return port
}

// reading matches commands that change nothing. They are run until they print what
// the page shows: events count a moment after they were accepted.
var reading = regexp.MustCompile(`^(affinity (profile|rank|boosts|explain|export|recompute list|strategy (get|list|diff)|migrate compare) |call localhost:8080/1/profiles)`)

const (
	stepLimit    = time.Minute
	readingLimit = 10 * time.Second
)

// run runs a command. It returns what the command printed and how that differs from
// the page, "" if it does not.
func (g *guide) run(s step) (got []string, diff string) {
	g.t.Helper()
	for begun := time.Now(); ; {
		got, code := g.shellRun(s.command)
		diff := compareOutput(s.prints, got)
		if code != "0" {
			diff += "the exit code is " + code
		}
		if diff == "" || !reading.MatchString(s.command+" ") || time.Since(begun) > readingLimit {
			return got, diff
		}
	}
}

// shellRun runs a command and returns the lines that it printed and its exit code.
func (g *guide) shellRun(command string) (lines []string, code string) {
	g.t.Helper()
	const end = "@@end of the command "
	command = strings.NewReplacer(g.free...).Replace(command)
	page := slices.Clone(g.free)
	slices.Reverse(page)
	if _, err := fmt.Fprintf(g.in, "%s\nprintf '\\n%s%%d\\n' $?\n", command, end); err != nil {
		g.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(g.t.Context(), stepLimit)
	defer cancel()
	for {
		select {
		case line, ok := <-g.lines:
			if !ok {
				g.t.Fatalf("$ %s\nthe shell ended", command)
			}
			if code, ok := strings.CutPrefix(line, end); ok {
				if n := len(lines) - 1; lines[n] == "" { // what printf wrote first
					lines = lines[:n]
				}
				return lines, code
			}
			if !jobNotice.MatchString(line) && !progress.MatchString(line) {
				lines = append(lines, strings.TrimRight(strings.NewReplacer(page...).Replace(line), " "))
			}
		case <-ctx.Done():
			g.t.Fatalf("$ %s\nhas not ended after %s:\n%s", command, stepLimit, strings.Join(lines, "\n"))
		}
	}
}

// progress is a line of a slow import or of a job that waits, as on a busy machine.
var progress = regexp.MustCompile(`^(\d+ (events|objects), \d+/s(, \d+% of the file)?|waiting to begin, until every instance .*)$`)

// jobNotice is what the shell says of a job that was killed, sooner or later.
var jobNotice = regexp.MustCompile(`^bash: line \d+: +\d+ (Killed|Terminated) `)

// varying are parts of an output that differ from run to run, with what stands for
// each.
var varying = []struct {
	part  *regexp.Regexp
	stand string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?`), "TIME"},
	{regexp.MustCompile(`-\d{8}T\d{6}Z-[a-z0-9]+`), "-ID"},
	{regexp.MustCompile(`\b[\d,.]+ (events|rows|lines)/s`), "RATE"},
	{regexp.MustCompile(`\b\d+(\.\d+)? ?(µs|ms|s|m|min|h|days?)\b`), "DURATION"},
	{regexp.MustCompile(`version \d+\.\d+\.\d+(-\w+)?`), "version VERSION"},
	{regexp.MustCompile(`^( +\d+) +\d\.\d{3} `), "$1 SCORE "},            // of an order: what is popular depends on the hour
	{regexp.MustCompile(`\bpopularity \d\.\d{3}\b`), "popularity SCORE"}, // so does a part of the score
}

// compareOutput returns how an output differs from what a page shows, "" if it does
// not.
func compareOutput(page, printed []string) string {
	want, got := plain(page), plain(printed)
	if fits(want, got) {
		return ""
	}
	return cmp.Diff(want, got)
}

// plain returns lines without what varies. JSON has no line breaks then.
func plain(lines []string) []string {
	if text := strings.Join(lines, "\n"); strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(text)); err == nil {
			lines = []string{compact.String()}
		}
	}
	out := make([]string, len(lines))
	for i, line := range lines {
		for _, v := range varying {
			line = v.part.ReplaceAllString(line, v.stand)
		}
		out[i] = line
	}
	return out
}

// fits reports whether lines are those of a page, where `...` is any number of lines.
func fits(page, lines []string) bool {
	switch {
	case len(page) == 0:
		return len(lines) == 0
	case page[0] == "...":
		for skip := range len(lines) + 1 {
			if fits(page[1:], lines[skip:]) {
				return true
			}
		}
		return false
	case len(lines) == 0 || page[0] != lines[0]:
		return false
	}
	return fits(page[1:], lines[1:])
}

func TestGuideFindsDifferences(t *testing.T) {
	for name, c := range map[string]struct {
		page, printed string
		same          bool
	}{
		"equal":            {"a\nb", "a\nb", true},
		"another line":     {"a\nb", "a\nc", false},
		"a line more":      {"a", "a\nb", false},
		"a line less":      {"a\nb", "a", false},
		"any lines":        {"a\n...\nd", "a\nb\nc\nd", true},
		"any lines, end":   {"a\n...", "a", true},
		"any, then wrong":  {"a\n...\nd", "a\nb\nc", false},
		"times":            {"at 2026-11-21T10:00:00Z (3 h ago)", "at 2027-01-02T03:04:05.678Z (14 h ago)", true},
		"other words":      {"in 3 s", "of 3 s", false},
		"scores":           {"1.200 a", "1.300 a", false},
		"ids":              {"recompute-20261121T193018Z-k6dgaa is done", "recompute-20270121T193018Z-abcdef is done", true},
		"JSON by its form": {"{\"a\":1,\n \"b\":2}", "{\"a\":1,\"b\":2}", true},
		"JSON by value":    {"{\"a\":1,\n \"b\":2}", "{\"a\":1,\"b\":3}", false},
	} {
		if diff := compareOutput(strings.Split(c.page, "\n"), strings.Split(c.printed, "\n")); (diff == "") != c.same {
			t.Errorf("%s: differs: %q, want the same: %v", name, diff, c.same)
		}
	}
}

func TestGuideReadsCommands(t *testing.T) {
	got := stepsOf("text\n```console\n$ one\nout\n$ cat > f <<'END'\n$ not a command\nEND\n$ two \\\n  more\n```\n```sh\n$ three\n```\n```console\nshown\n```\n")
	want := []step{{"", "one", []string{"out"}}, {"", "cat > f <<'END'\n$ not a command\nEND", nil}, {"", "two \\\n  more", nil}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(step{})); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}
