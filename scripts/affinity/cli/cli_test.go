package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"testing"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/cli/clitest"
)

// tool is a program with a command per way to end.
func tool(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fails := func(use string, err error) *cobra.Command {
		return &cobra.Command{Use: use, Args: cli.Subcommand, RunE: func(*cobra.Command, []string) error { return err }}
	}
	show := &cobra.Command{Use: "show FROM TO", Args: cli.Args("FROM", "TO"), RunE: func(cmd *cobra.Command, args []string) error {
		if err := cli.Require(cmd, "rate", "such as --rate 5"); err != nil {
			return err
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), args)
		return err
	}}
	show.Flags().Int("rate", 0, "")
	root := cli.Group(&cobra.Command{Use: "tool"}, show,
		fails("broken", errors.New("no\x1b[2J\nluck")), fails("misused", cli.Usagef("not so")),
		fails("partial", fmt.Errorf("most of it: %w", cli.WithCode(errors.New("one line is bad"), 3))), fails("silent", cli.SilentError(7)),
		fails("child", fmt.Errorf("run a child: %w", exec.Command("sh", "-c", "exit 2").Run())))
	return cli.Execute(ctx, root, args, cli.Streams{In: stdin, Out: stdout, Err: stderr}, func(err error) string {
		if err.Error() == "not so" {
			return "Do it another way."
		}
		return ""
	})
}

func TestExecute(t *testing.T) {
	for _, test := range []struct {
		args []string
		code int
		err  string // all of stderr; "": not checked
		want string
	}{
		{[]string{"show", "a", "b", "--rate", "5"}, cli.ExitOK, "", "[a b]"},
		{[]string{"show", "a"}, cli.ExitUsage, "affinity: TO is missing: tool show FROM TO [flags]\nRun 'tool show --help' for its usage.\n", ""},
		{[]string{"show", "a", "b", "c"}, cli.ExitUsage, "", `unexpected argument "c" after FROM TO`},
		{[]string{"show", "a", "b"}, cli.ExitUsage, "", "--rate is required: such as --rate 5"},
		{[]string{"show", "--size"}, cli.ExitUsage, "", "unknown flag: --size"},
		{nil, cli.ExitUsage, "", "tool needs a command"},
		{[]string{"shwo"}, cli.ExitUsage, "", `unknown command "shwo" for "tool" (did you mean show?)`},
		{[]string{"xyzzy"}, cli.ExitUsage, "affinity: unknown command \"xyzzy\" for \"tool\"\nRun 'tool --help' for its usage.\n", ""},
		{[]string{"broken"}, cli.ExitFailed, "affinity: no\uFFFD[2J\nluck\n", ""},
		{[]string{"misused"}, cli.ExitUsage, "affinity: not so\nRun 'tool misused --help' for its usage.\nDo it another way.\n", ""},
		{[]string{"partial"}, 3, "affinity: most of it: one line is bad\n", ""},
		{[]string{"silent"}, 7, "", ""},
		{[]string{"child"}, cli.ExitFailed, "affinity: run a child: exit status 2\n", ""},
	} {
		t.Run(fmt.Sprint(test.args), func(t *testing.T) {
			r := clitest.Run(t.Context(), tool, "", test.args...)
			r.Wants(t, test.code, test.want)
			if test.err != "" && r.Err != test.err {
				t.Errorf("stderr is %q, want %q", r.Err, test.err)
			}
		})
	}
	if r := clitest.Run(t.Context(), tool, "", "silent"); r.Err != "" {
		t.Errorf("a silent error printed %q", r.Err)
	}
}

func TestExecuteInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	clitest.Run(ctx, tool, "", "broken").Wants(t, cli.ExitFailed, "affinity: interrupted: no")
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 users", 1: "1 user", 2: "2 users"} {
		if got := cli.Count(n, "user"); got != want {
			t.Errorf("Count(%d) is %q, want %q", n, got, want)
		}
	}
}
