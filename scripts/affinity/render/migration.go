package render

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
)

// The phases of a migration and the kinds of its jobs have the names of the steps
// that lead to them, but for the first.
const phaseDual = "dual"

// Step is a step of a migration, as the command line names it.
type Step struct {
	Name  string // of the command and of the route
	Again string // the command line that repeats the step
}

// Migration is the engine's answer about the schemas of a log and its migration.
type Migration struct{ api.Schema }

// Working is the job that is under way, nil if there is none.
func (a Migration) Working() *api.MigrationJob {
	if a.Migration == nil || a.Migration.Job == nil || a.Migration.Job.State.Ended() {
		return nil
	}
	return a.Migration.Job
}

// SameStep reports whether a migration is at the step where it was, however far
// its job is.
func (a Migration) SameStep(was Migration) bool {
	if a.Migration == nil || a.Migration.ID != was.Migration.ID || a.Migration.Phase != was.Migration.Phase ||
		(a.Migration.Job == nil) != (was.Migration.Job == nil) {
		return false
	}
	return a.Read == was.Read && (a.Migration.Job == nil || a.Migration.Job.ID == was.Migration.Job.ID)
}

// undone reports whether the step undid the cutover. The migration is then where
// it was after its backfill.
func (a Migration) undone(s Step) bool {
	return s.Name == api.StepRollback && a.Migration.Phase != api.StepRollback
}

// JobOf is the job that does the work of a step, nil if the step has none.
func (a Migration) JobOf(s Step) *api.MigrationJob {
	if a.undone(s) {
		return nil
	}
	return a.Migration.Job
}

// Begun is a line that says what a step started, and when every instance follows
// it.
func (a Migration) Begun(s Step) string {
	text := a.changed(s)
	if job := a.JobOf(s); job != nil {
		text = fmt.Sprintf("%s is %s", cli.Printable(job.ID), cli.Printable(string(job.State)))
		if job.Kind == api.StepBackfill && job.Rate != nil && *job.Rate > 0 {
			text += fmt.Sprintf(", at most %s rows/s", grouped(int64(*job.Rate)))
		}
	}
	if a.SettlesInMs > 0 {
		text += a.propagates()
	}
	return text
}

func (a Migration) propagates() string {
	return fmt.Sprintf(", on every instance in %.1f s", float64(a.SettlesInMs)/1000)
}

// changed says what a step without a job changed.
func (a Migration) changed(s Step) string {
	read, written := cli.Printable(a.Read), cli.Printable(strings.Join(a.Written, " and "))
	switch {
	case s.Name == api.StepStart:
		return fmt.Sprintf("%s are written, %s is read", written, read)
	case a.undone(s):
		return fmt.Sprintf("%s is read again, %s are written", read, written)
	}
	return fmt.Sprintf("%s is read, %s are written", read, written)
}

// Interrupted says what happens to a step that the command no longer waits for.
func (a Migration) Interrupted(s Step) string {
	if job := a.Working(); job != nil {
		return fmt.Sprintf("%s continues: run `affinity schema %s` again to wait for it, or `affinity schema "+
			"status` to see how far it is",
			cli.Printable(job.ID), s.Again)
	}
	text := a.changed(s) + ", and every instance follows within seconds: "
	if a.undone(s) { // repeating it would abandon the migration
		return text + "`affinity schema status` shows when"
	}
	return text + fmt.Sprintf("run `affinity schema %s` again to wait for it", s.Again)
}

// Faults lists the first faults of a step's job, and how many more there are.
func (a Migration) Faults(s Step) string {
	job := a.JobOf(s)
	if job == nil {
		return ""
	}
	var b strings.Builder
	for _, fault := range job.Faults {
		fmt.Fprintf(&b, "  %s\n", cli.Printable(fault))
	}
	if more := job.Faulty - int64(len(job.Faults)); more > 0 {
		fmt.Fprintf(&b, "  and %s more\n", grouped(more))
	}
	return b.String()
}

// Ended is a line with the outcome of a step, or an error that says why it
// failed.
func (a Migration) Ended(s Step) (string, error) {
	job := a.JobOf(s)
	if job == nil {
		return a.changed(s) + ", on every instance", nil
	}
	from, to, id, took := cli.Printable(a.Migration.From), cli.Printable(a.Migration.To), cli.Printable(job.ID),
		Took(job.StartedAt, job.FinishedAt)
	switch {
	case job.Kind == api.StepVerify && job.Faulty > 0 && job.State == api.JobFailed:
		return "", fmt.Errorf("%s failed: %s or profiles differed between %s and %s, and it repaired %s. "+
			"`affinity schema verify` compares again; `affinity schema backfill` copies what is missing. Repair or "+
			"remove rows that do not decode first",
			id, rows(job.Faulty), from, to, grouped(job.Changed))
	case job.State == api.JobFailed:
		return "", fmt.Errorf("%s failed: %s%s", id, cli.Printable(job.Error), a.possible())
	case job.State != api.JobDone:
		return "", fmt.Errorf("%s is %s: %s%s", id, cli.Printable(string(job.State)), cli.Printable(job.Error), a.possible())
	case s.Name == api.StepRollback:
		return fmt.Sprintf("the migration to %s is abandoned: %s removed%s", to, rows(job.Changed), took), nil
	case s.Name == api.StepDrop:
		return fmt.Sprintf("%s is dropped: %s removed%s", from, rows(job.Changed), took), nil
	case s.Name == api.StepVerify:
		return fmt.Sprintf("%s is done: %s are the same in %s and %s%s", id, rows(job.Rows), from, to, took), nil
	}
	text := fmt.Sprintf("%s is done: %s copied, %s skipped%s", id, rows(job.Changed), grouped(job.Faulty), took)
	if job.Faulty > 0 {
		return "", errors.New(text + ". The skipped rows do not decode: repair or remove them and run `affinity " +
			"schema backfill` again, " +
			"or the verification will fail")
	}
	return text, nil
}

// possible names the commands that are possible now.
func (a Migration) possible() string {
	var lines []string
	for _, c := range a.commands() {
		lines = append(lines, "`"+c.line+"`")
	}
	if len(lines) == 0 {
		return ""
	}
	return ". Possible now: " + strings.Join(lines, " or ")
}

// Next is a line with the command to run next; "" once the migration is over.
func (a Migration) Next() string {
	next := a.commands()
	if !a.Migration.Moving || len(next) == 0 {
		return ""
	}
	return fmt.Sprintf("next: %s  (%s)\n", next[0].line, next[0].does)
}

// nextCommand is a command that is possible now, and what it does.
type nextCommand struct{ line, does string }

func (a Migration) commands() []nextCommand {
	var all []nextCommand
	for _, step := range a.Schema.Next {
		arguments, does := a.step(step)
		all = append(all, nextCommand{"affinity schema " + cli.Printable(step) + arguments, does})
	}
	return all
}

// step returns the arguments of a possible step, and what it does.
func (a Migration) step(name string) (arguments, does string) {
	if name == api.StepStart {
		other := api.SchemaWide
		if a.Read == other {
			other = api.SchemaNarrow
		}
		return " --to " + other, "begins a migration"
	}
	if a.Migration == nil {
		return "", ""
	}
	from, to := cli.Printable(a.Migration.From), cli.Printable(a.Migration.To)
	switch name {
	case api.StepBackfill:
		return "", "copies what was written before the start"
	case api.StepVerify:
		return "", "compares both schemas row by row"
	case api.StepCutover:
		return "", "switches reads to " + to
	case api.StepDrop:
		return " --schema " + from, "removes " + from + ": after it there is no way back"
	case api.StepRollback:
		if a.Migration.Phase == api.StepCutover {
			return "", "switches reads back to " + from
		}
		return "", "abandons the migration and removes what it wrote"
	}
	return "", ""
}

// Status describes the schemas of a log and its migration in a few lines.
func (a Migration) Status() string {
	var b strings.Builder
	verb := "is"
	if len(a.Written) != 1 {
		verb = "are"
	}
	fmt.Fprintf(&b, "the log is read from %s; %s %s written, encoding %s\n", cli.Printable(a.Read),
		cli.Printable(strings.Join(a.Written, " and ")), verb, cli.Printable(a.Encoding))
	if a.SettlesInMs > 0 {
		fmt.Fprintf(&b, "every instance follows in %.1f s\n", float64(a.SettlesInMs)/1000)
	}
	if m := a.Migration; m != nil {
		fmt.Fprintf(&b, "%s from %s to %s, begun %s, %s\n", cli.Printable(m.ID), cli.Printable(m.From),
			cli.Printable(m.To), timestamp(m.StartedAt), phase(*m))
		if m.Job != nil {
			b.WriteString(describeJob(*m.Job))
		}
	}
	for _, c := range a.commands() {
		fmt.Fprintf(&b, "next: %-38s %s\n", c.line, c.does)
	}
	return b.String()
}

// phase says how far a migration is, in words.
func phase(m api.Migration) string {
	if !m.Moving {
		return "ended with " + cmp.Or(map[string]string{api.StepDrop: "the drop of the old schema",
			api.StepRollback: "a rollback"}[m.Phase], cli.Printable(m.Phase))
	}
	if m.Phase == api.StepRollback {
		return "rollback: what the migration wrote is being removed"
	}
	phases := []string{phaseDual, api.StepBackfill, api.StepVerify, api.StepCutover, api.StepDrop}
	said := []string{"both schemas are written", "backfill", "verification", "reads use the new schema",
		"drop of the old schema"}
	if i := slices.Index(phases, m.Phase); i >= 0 {
		return fmt.Sprintf("step %d of %d: %s", i+1, len(phases), said[i])
	}
	return cli.Printable(m.Phase)
}

// describeJob says how far a job is, and its first faults.
func describeJob(j api.MigrationJob) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is %s%s: ", cli.Printable(j.ID), cli.Printable(string(j.State)), Took(j.StartedAt, j.FinishedAt))
	users := fmt.Sprintf("%s of %s", grouped(j.Users), plural(j.PlannedUsers, "user"))
	switch j.Kind {
	case api.StepBackfill:
		fmt.Fprintf(&b, "%s, %s copied, %s skipped\n", users, rows(j.Changed), grouped(j.Faulty))
	case api.StepVerify:
		fmt.Fprintf(&b, "%s, %s compared, %s different, %s of these repaired\n", users, rows(j.Rows),
			grouped(j.Faulty), grouped(j.Changed))
	default:
		fmt.Fprintf(&b, "%s removed\n", rows(j.Changed))
	}
	if wait := Before(j.Place) + EstimatedEnd(j.Wait); wait != "" {
		fmt.Fprintf(&b, "  %s\n", strings.TrimPrefix(wait, ", "))
	}
	if j.Error != "" {
		fmt.Fprintf(&b, "  %s\n", cli.Printable(j.Error))
	}
	for _, fault := range j.Faults {
		fmt.Fprintf(&b, "  %s\n", cli.Printable(fault))
	}
	return b.String()
}
