package command

import (
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/contexts"
)

// CompletionWait is how long a shell waits for an engine.
const CompletionWait = 2 * time.Second

// CompleteContexts completes the name of a context.
func (t *Tool) CompleteContexts(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	l, err := t.Contexts.Read()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(l.Contexts)), cobra.ShellCompDirectiveNoFileComp
}

// FromContext takes URL, app, key and deployment from the current context, or from the one
// of --context, unless a flag or a variable gives one of the first three.
func (t *Tool) FromContext(given func(flag string) bool) error {
	chosen := given("context")
	for _, flag := range []string{"url", "app", "key", "key-file", "project"} {
		if chosen && given(flag) {
			return cli.Usagef("--context and --%s cannot both be given: a context names the engine, the app and the key", flag)
		}
	}
	if !chosen && (t.given || t.Contexts == (contexts.Store{})) {
		return nil
	}
	l, err := t.Contexts.Read()
	if err != nil {
		return err
	}
	name := l.Current
	if chosen {
		name = t.Context
	}
	if name == "" {
		return nil
	}
	c, ok := l.Contexts[name]
	if !ok {
		return cli.Usagef("--context %q: there is no such context; `affinity context list` lists all", name)
	}
	t.URL, t.App, t.Context, t.Deployment = c.URL, c.App, name, c.Deployment
	t.readKey = func() (string, error) { return l.Key(name) }
	return nil
}
