package local

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/checkup"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// The names of the checks that the command itself makes.
const (
	checkEngine  = "engine"
	checkVersion = "version"
	checkClock   = "clock"
	checkKey     = "key"
	checkFolder  = "folder"
	checkDisk    = "disk"
)

const (
	// clockSlack is by how much the clocks of the engine and of this machine may differ: an
	// event more than 5 minutes ahead of the engine's gets another time.
	clockSlack = time.Minute
	// clockTimeout is how long the engine may take to say what time it has.
	clockTimeout = 10 * time.Second
	// plentyDisk is how many times the room, below which an engine refuses events, a disk is to have.
	plentyDisk = 2
)

// diagnosis is what the command prints.
type diagnosis struct {
	URL    string          `json:"url"`
	App    string          `json:"app"`
	Faults int             `json:"faults"` // checks that are not ok
	Checks []checkup.Check `json:"checks"`
}

// Doctor returns the command doctor.
func Doctor(t *command.Tool) *cobra.Command {
	var folder string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for faults of the engine and the app, and name a remedy for each; exit code 1 if there are any",
		Long: "Look for faults of the engine and the app, and print a remedy for each: whether the engine answers,\n" +
			"its version and its clock, the strategy and whether it scores what arrives, events that arrive, are\n" +
			"refused or could not be applied, crowd statistics, folds, and keys that end. With --data also the\n" +
			"folder of `affinity up --data` on this machine, while the engine uses it: its format and the room on\n" +
			"its disk. The exit code is 0 if all is in order, and 1 if a check found a fault or could not be\n" +
			"made. It changes nothing. Requires a key with the permissions admin, usage and recommendation.",
		Example: "  affinity doctor\n  affinity doctor --data affinity-data\n" +
			"  affinity doctor --url https://affinity.example.com --app shop --json | jq '.checks[] | select(.state != \"ok\")'",
		Args: cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := diagnosis{URL: t.URL, App: t.App}
			if err := d.engine(cmd.Context(), t); err != nil {
				return err
			}
			if folder != "" {
				d.folder(folder)
			}
			return d.print(t)
		},
	}
	cmd.Flags().StringVar(&folder, "data", "", "folder of `affinity up --data` on this machine, to look at too")
	t.JSONFlag(cmd, command.JSONDocument)
	return cmd
}

func (d *diagnosis) add(name string, state checkup.State, text, remedy string) {
	d.Checks = append(d.Checks, checkup.Check{Name: name, State: state, Text: text, Remedy: remedy})
}

// engine checks the engine, and the app if the engine answers.
func (d *diagnosis) engine(ctx context.Context, t *command.Tool) error {
	c, err := t.Client()
	if err != nil {
		return err
	}
	health, err := c.Health(ctx)
	if err != nil {
		d.add(checkEngine, checkup.Fault, err.Error(), "affinity up, or name the engine with --url")
		return ctx.Err()
	}
	d.add(checkEngine, checkup.OK, t.URL+" answers", "")
	if health.Version == api.Version {
		d.add(checkVersion, checkup.OK, health.Version+", as this tool", "")
	} else {
		d.add(checkVersion, checkup.Fault, "the engine has version "+health.Version+" and this tool "+api.Version,
			"install version "+health.Version+" of this tool")
	}
	d.clock(ctx, t.URL)
	return d.app(ctx, c)
}

// clock compares the clock of the engine, by the header Date, with that of this machine.
func (d *diagnosis) clock(ctx context.Context, url string) {
	ctx, cancel := context.WithTimeout(ctx, clockTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(url, "/")+"/health", nil)
	if err != nil {
		d.add(checkClock, checkup.Unknown, err.Error(), "")
		return
	}
	before := time.Now()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		d.add(checkClock, checkup.Unknown, err.Error(), "")
		return
	}
	_ = response.Body.Close() // only its header counts
	now := before.Add(time.Since(before) / 2)
	theirs, err := http.ParseTime(response.Header.Get("Date"))
	switch ahead := now.Sub(theirs).Round(time.Second); {
	case err != nil:
		d.add(checkClock, checkup.Unknown, "the engine's answer has no time: "+err.Error(), "")
	case ahead.Abs() <= clockSlack:
		d.add(checkClock, checkup.OK, "within "+clockSlack.String()+" of this machine's", "")
	case ahead > 0:
		d.add(checkClock, checkup.Fault, "the engine's clock is "+ahead.String()+" behind this machine's", setClock)
	default:
		d.add(checkClock, checkup.Fault, "the engine's clock is "+(-ahead).String()+" ahead of this machine's", setClock)
	}
}

const setClock = "synchronize the clocks of both machines, such as with timedatectl set-ntp true"

// usageDays is how many days of use the checks look at.
const usageDays = 30

// app asks for all that the checks of the app need.
func (d *diagnosis) app(ctx context.Context, c *client.Client) error {
	a := checkup.Answers{Now: time.Now()}
	var first error // why something was not answered
	take := func(err error) bool {
		if first == nil {
			first = err
		}
		return err == nil
	}
	from, to := a.Now.UTC().AddDate(0, 0, 1-usageDays), a.Now.UTC()
	if u, err := c.Usage(ctx, from.Format(time.DateOnly), to.Format(time.DateOnly)); take(err) {
		a.Usage = &u
	} else if status := command.StatusOf(err); status == http.StatusUnauthorized {
		d.add(checkKey, checkup.Fault, fmt.Sprintf("the engine does not know app %q with this key", d.App),
			"give --app and --key, or make a key with affinity app key add")
		return nil
	}
	if v, err := c.Strategies().Versions(ctx); take(err) {
		if a.Versions = &v; len(v.Versions) > 0 {
			if s, err := c.Strategies().Get(ctx); take(err) {
				a.Active = &s
			}
		}
	}
	if s, err := c.Events().Seen(ctx, api.DefaultSeenDays); take(err) {
		a.Seen = &s
	}
	if s, err := c.Jobs().Crowd(ctx); take(err) {
		a.Crowd = &s
	}
	if r, err := c.Jobs().Recomputes(ctx); take(err) {
		a.Recomputes = &r
	}
	if s, err := c.AppSettings(ctx, api.AppSettingsQuery{Limit: api.MaxKeys}); take(err) {
		a.Settings = &s
	}
	if first != nil {
		d.add(checkKey, checkup.Unknown, first.Error(), "affinity app key add "+d.App+" --acl admin,usage,recommendation")
	} else {
		d.add(checkKey, checkup.OK, "has the permissions that the checks need", "")
	}
	d.Checks = append(d.Checks, checkup.Find(a)...)
	return ctx.Err()
}

// folder looks at the folder of a local engine.
func (d *diagnosis) folder(dir string) {
	c, err := stack.LookAtData(dir)
	if err != nil {
		d.add(checkFolder, checkup.Unknown, err.Error(), "name the folder that affinity up --data has")
		return
	}
	if c.Format == c.Reads {
		d.add(checkFolder, checkup.OK, "format "+c.Format+", which this version reads", "")
	} else {
		d.add(checkFolder, checkup.Fault, dir+" has format "+c.Format+" and this version reads "+c.Reads,
			"start it with the version that made it, and carry its apps over with affinity dump")
	}
	free := fmt.Sprintf("%d MB of room", c.Free>>20)
	if c.Free >= plentyDisk*c.Least {
		d.add(checkDisk, checkup.OK, free, "")
		return
	}
	d.add(checkDisk, checkup.Fault, fmt.Sprintf("%s: below %d MB the engine refuses events", free, c.Least>>20),
		"make room on the disk of "+dir)
}

// print prints the checks, each fault with its remedy below it. The error says that there are faults.
func (d *diagnosis) print(t *command.Tool) error {
	d.Faults = len(checkup.Faults(d.Checks))
	show := d.lines
	if t.JSON {
		show = func(out io.Writer) error { return cli.PrintJSON(out, d) }
	}
	if err := show(t.Out); err != nil || d.Faults == 0 {
		return err
	}
	return cli.SilentError(cli.ExitFailed)
}

func (d *diagnosis) lines(out io.Writer) error {
	width := 0
	for _, c := range d.Checks {
		width = max(width, len(c.Name))
	}
	for _, c := range d.Checks {
		line := fmt.Sprintf("%-7s  %-*s  %s\n", c.State, width, c.Name, cli.Printable(c.Text))
		if c.Remedy != "" {
			line += fmt.Sprintf("%-7s  %-*s  -> %s\n", "", width, "", cli.Printable(c.Remedy))
		}
		if _, err := fmt.Fprint(out, line); err != nil {
			return err
		}
	}
	text := "no faults"
	if d.Faults > 0 {
		text = cli.Count(d.Faults, "check") + " found a fault or could not be made"
	}
	_, err := fmt.Fprintf(out, "%s\n", text)
	return err
}
