package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/command"
)

// call matches a call of this tool up to what ends it in a shell or in a page.
var call = regexp.MustCompile("(?:^|[\\s`(|])(?:affinity|go run \\./scripts/affinity) ([a-z][^`|;>#()\\n]*)")

// Every command in a README, a runbook, an alert or a guide is one of this tool, and has the
// flags that it is given there. The pages of the folder commands are made of the commands.
func TestNamedCommands(t *testing.T) {
	root := rootCommand(&program{Tool: &command.Tool{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}})
	root.InitDefaultCompletionCmd() // as Execute does
	named := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{"node_modules", "testdata", ".git", ".terraform", "commands"}, d.Name()) {
			return fs.SkipDir
		}
		if ext := filepath.Ext(path); ext != ".md" && ext != ".tf" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, words := range calls(string(text), filepath.Ext(path) == ".md") {
			named++
			if err := knows(root, words); err != nil {
				t.Errorf("%s: affinity %s: %v", path, strings.Join(words, " "), err)
			}
		}
		return nil
	})
	if err != nil || named < 300 {
		t.Errorf("%d commands found: %v", named, err)
	}
}

// calls returns the words of each call in a page: of one between backticks, and of one in a block of code.
func calls(text string, blocks bool) (all [][]string) {
	text = strings.ReplaceAll(text, "\\\n", " ")
	block := false
	for line := range strings.Lines(text) {
		if blocks && strings.HasPrefix(strings.TrimSpace(line), "```") {
			block = !block
			continue
		}
		quoted := strings.Split(line, "`")
		for i, part := range quoted {
			if !block && i%2 == 0 {
				continue // prose
			}
			for _, m := range call.FindAllStringSubmatch(part, -1) {
				if starts(part, m[0]) {
					all = append(all, strings.Fields(m[1]))
				}
			}
			if block {
				break
			}
		}
	}
	return all
}

// starts reports whether a call is at the start of a command: of the line, behind variables of its environment, or
// behind a pipe. Anything else is what a command prints.
func starts(line, call string) bool {
	before, _, _ := strings.Cut(line, strings.TrimLeft(call, " `(|"))
	before = strings.TrimSpace(before)
	if strings.HasSuffix(before, "|") || strings.HasSuffix(before, "&&") || strings.HasSuffix(before, "$(") {
		return true
	}
	for _, word := range strings.Fields(strings.TrimPrefix(before, "$")) {
		if !strings.Contains(word, "=") {
			return false
		}
	}
	return true
}

// knows returns what is wrong with a call, or nil.
func knows(root *cobra.Command, words []string) error {
	if words[0] == "bench" || words[0] == "help" {
		return nil // a program of its own, and cobra's
	}
	cmd := root
	for _, word := range words {
		if strings.HasPrefix(word, "-") {
			break
		}
		next, _, err := cmd.Find([]string{word})
		if err != nil || next == cmd {
			if cmd.HasSubCommands() && !cmd.Runnable() || cmd == root {
				return fmt.Errorf("%s has no command %q", cmd.CommandPath(), word)
			}
			break
		}
		cmd = next
	}
	for _, word := range words {
		if word == "--" {
			break
		}
		name, _, _ := strings.Cut(strings.TrimRight(word, ",.:'\""), "=")
		long, ok := strings.CutPrefix(name, "--")
		if ok && long != "help" && cmd.Flag(long) == nil && cmd.InheritedFlags().Lookup(long) == nil {
			return fmt.Errorf("%s has no flag %s", cmd.CommandPath(), name)
		}
	}
	return nil
}
