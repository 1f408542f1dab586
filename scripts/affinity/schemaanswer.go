package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// schemaAnswer is what the engine says of how an app's log lies.
type schemaAnswer struct {
	Read        string      `json:"read"`
	Written     []string    `json:"written"`
	Encoding    string      `json:"encoding"`
	Move        *moveAnswer `json:"move"`
	SettlesInMs int64       `json:"settlesInMs"`
	Next        []string    `json:"next"`
}

// moveAnswer is the last move of the log, under way or over.
type moveAnswer struct {
	ID        string         `json:"id"`
	From      string         `json:"from"`
	To        string         `json:"to"`
	Phase     string         `json:"phase"`
	StartedAt time.Time      `json:"startedAt"`
	Moving    bool           `json:"moving"`
	Job       *moveJobAnswer `json:"job"`
}

// moveJobAnswer is the job of a move's phase. Its users are those that it has come to.
type moveJobAnswer struct {
	jobAnswer
	Kind    string   `json:"kind"`
	Rate    int      `json:"rate"`
	Rows    int64    `json:"rows"`
	Changed int64    `json:"changed"`
	Faulty  int64    `json:"faulty"`
	Faults  []string `json:"faults"`
}

func readSchema(body []byte, err error) (schemaAnswer, error) {
	var a schemaAnswer
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(body, &a); err != nil || a.Read == "" || a.Move != nil && a.Move.Job != nil && a.Move.Job.State == "" {
		return a, fmt.Errorf("the answer is not what an Affinity engine says of the schema: %.200q", body)
	}
	return a, nil
}

// progress is the job as it is watched. A drop comes to rows, not to users.
func (j moveJobAnswer) progress() jobAnswer {
	p := j.jobAnswer
	p.VisitedUsers, p.Events, p.rows = j.Users, j.Rows, "rows"
	if j.Kind == "drop" {
		p.PlannedUsers, p.VisitedUsers, p.parts = int64(j.Shards.Total), int64(j.Shards.Done), "parts"
	}
	return p
}

// sameStep tells whether the move is where it was, however far its job is.
func (a schemaAnswer) sameStep(was schemaAnswer) bool {
	if a.Move == nil || a.Move.ID != was.Move.ID || a.Move.Phase != was.Move.Phase || (a.Move.Job == nil) != (was.Move.Job == nil) {
		return false
	}
	return a.Read == was.Read && (a.Move.Job == nil || a.Move.Job.ID == was.Move.Job.ID)
}

// working is the job that is under way; nil if none is.
func (a schemaAnswer) working() *moveJobAnswer {
	if a.Move == nil || a.Move.Job == nil || a.Move.Job.State != "planning" && a.Move.Job.State != "running" {
		return nil
	}
	return a.Move.Job
}

// undone tells whether a step took the cutover back. The move is then where its
// backfill had been done.
func (a schemaAnswer) undone(step schemaStep) bool {
	return step.name == "rollback" && a.Move.Phase != "rollback"
}

// jobOf is the job that does the work of a step; nil if none does.
func (a schemaAnswer) jobOf(step schemaStep) *moveJobAnswer {
	if a.undone(step) {
		return nil
	}
	return a.Move.Job
}

// begun says in a line what a step has begun, and how long it takes to be in force.
func (a schemaAnswer) begun(step schemaStep) string {
	text := a.changed(step)
	if job := a.jobOf(step); job != nil {
		text = fmt.Sprintf("%s is %s", cli.Printable(job.ID), cli.Printable(job.State))
		if job.Kind == "backfill" && job.Rate > 0 {
			text += fmt.Sprintf(", at most %s rows/s", grouped(int64(job.Rate)))
		}
	}
	if a.SettlesInMs > 0 {
		text += fmt.Sprintf(", in force everywhere in %.1f s", float64(a.SettlesInMs)/1000)
	}
	return text
}

// changed says what has become of the log by a step without a job.
func (a schemaAnswer) changed(step schemaStep) string {
	switch {
	case step.name == "start":
		return fmt.Sprintf("%s are written, %s is read", a.written(), cli.Printable(a.Read))
	case a.undone(step):
		return fmt.Sprintf("%s is read again, %s are written", cli.Printable(a.Read), a.written())
	}
	return fmt.Sprintf("%s is read, %s are written", cli.Printable(a.Read), a.written())
}

func (a schemaAnswer) written() string { return cli.Printable(strings.Join(a.Written, " and ")) }

// interrupted says what becomes of a step that is not waited for any more.
func (a schemaAnswer) interrupted(step schemaStep) string {
	if job := a.working(); job != nil {
		return fmt.Sprintf("%s goes on by itself: `affinity schema %s` goes on waiting for it, `affinity schema status` tells how far it is",
			cli.Printable(job.ID), step.again)
	}
	if a.undone(step) { // again it would give the move up
		return fmt.Sprintf("%s comes into force everywhere by itself: `affinity schema status` tells when", a.changed(step))
	}
	return fmt.Sprintf("%s, which comes into force everywhere by itself: `affinity schema %s` goes on waiting for it", a.changed(step), step.again)
}

// ended says in a line what a step came to, or why it did not come to it.
func (a schemaAnswer) ended(step schemaStep) (string, error) {
	job := a.jobOf(step)
	if job == nil {
		return a.changed(step) + ", everywhere", nil
	}
	from, to := cli.Printable(a.Move.From), cli.Printable(a.Move.To)
	id := cli.Printable(job.ID)
	switch {
	case job.Kind == "verify" && job.Faulty > 0 && job.State == "failed":
		return "", fmt.Errorf("%s is failed: %s rows or profiles were not the same in %s and %s, %s of them are mended now. `affinity schema verify` "+
			"looks again, `affinity schema backfill` copies what is missing; rows that do not decode must be mended or removed first",
			id, grouped(job.Faulty), from, to, grouped(job.Changed))
	case job.State != "done":
		return "", fmt.Errorf("%s is %s: %s%s", id, cli.Printable(job.State), cli.Printable(job.Error), a.mayCome())
	case step.name == "rollback":
		return fmt.Sprintf("the move to %s is given up: %s rows of it are removed%s", to, grouped(job.Changed), job.took()), nil
	case step.name == "drop":
		return fmt.Sprintf("%s is dropped: %s rows are removed%s", from, grouped(job.Changed), job.took()), nil
	case step.name == "verify":
		return fmt.Sprintf("%s is done: %s rows are the same in %s and %s%s", id, grouped(job.Rows), from, to, job.took()), nil
	}
	text := fmt.Sprintf("%s is done: %s rows copied, %s skipped%s", id, grouped(job.Changed), grouped(job.Faulty), job.took())
	if job.Faulty > 0 {
		return "", errors.New(text + ". Those skipped do not decode: the move will not verify until they are mended or removed, " +
			"and `affinity schema backfill` is done again")
	}
	return text, nil
}

// mayCome names the commands that may come next, with what stands before them.
func (a schemaAnswer) mayCome() string {
	var lines []string
	for _, c := range a.commands() {
		lines = append(lines, "`"+c.line+"`")
	}
	if len(lines) == 0 {
		return ""
	}
	return ". Next may be " + strings.Join(lines, " or ")
}

// nextCommand is a command that may come next, and what it does.
type nextCommand struct{ line, does string }

// commands are what may come next.
func (a schemaAnswer) commands() []nextCommand {
	var all []nextCommand
	add := func(does, line string, args ...any) {
		all = append(all, nextCommand{"affinity schema " + fmt.Sprintf(line, args...), does})
	}
	for _, next := range a.Next {
		switch {
		case next == "start":
			other := "wide"
			if a.Read == other {
				other = "narrow"
			}
			add("begins a move", "start --to %s", other)
		case a.Move == nil:
			add("", "%s", cli.Printable(next))
		case next == "backfill":
			add("copies what was written before the start", "backfill")
		case next == "verify":
			add("compares both, row by row", "verify")
		case next == "cutover":
			add(fmt.Sprintf("has %s read", cli.Printable(a.Move.To)), "cutover")
		case next == "drop":
			add(fmt.Sprintf("removes %s: then there is no way back", cli.Printable(a.Move.From)), "drop --schema %s", cli.Printable(a.Move.From))
		case next == "rollback" && a.Move.Phase == "cutover":
			add(fmt.Sprintf("has %s read again", cli.Printable(a.Move.From)), "rollback")
		case next == "rollback":
			add("gives the move up and removes what it wrote", "rollback")
		default:
			add("", "%s", cli.Printable(next))
		}
	}
	return all
}

// describe tells all of it in a few lines.
func (a schemaAnswer) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the log lies in %s; %s written, values as %s\n", cli.Printable(a.Read), areWritten(a.Written), cli.Printable(a.Encoding))
	if a.SettlesInMs > 0 {
		fmt.Fprintf(&b, "in force everywhere in %.1f s\n", float64(a.SettlesInMs)/1000)
	}
	if m := a.Move; m != nil {
		is := "is over since its"
		if m.Moving {
			is = "is at its"
		}
		fmt.Fprintf(&b, "%s from %s to %s, begun %s, %s %s\n", cli.Printable(m.ID), cli.Printable(m.From), cli.Printable(m.To),
			m.StartedAt.UTC().Format(time.RFC3339), is, cli.Printable(m.Phase))
		if m.Job != nil {
			b.WriteString(m.Job.describe())
		}
	}
	for _, c := range a.commands() {
		fmt.Fprintf(&b, "next: %-38s %s\n", c.line, c.does)
	}
	return b.String()
}

func areWritten(names []string) string {
	if len(names) == 1 {
		return cli.Printable(names[0]) + " is"
	}
	return cli.Printable(strings.Join(names, " and ")) + " are"
}

// describe tells how far a job is, and what it found first.
func (j moveJobAnswer) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is %s%s: ", cli.Printable(j.ID), cli.Printable(j.State), j.took())
	switch j.Kind {
	case "backfill":
		fmt.Fprintf(&b, "%s of %s users, %s rows copied, %s skipped\n", grouped(j.Users), grouped(j.PlannedUsers), grouped(j.Changed), grouped(j.Faulty))
	case "verify":
		fmt.Fprintf(&b, "%s of %s users, %s rows compared, %s not the same, %s of them mended\n",
			grouped(j.Users), grouped(j.PlannedUsers), grouped(j.Rows), grouped(j.Faulty), grouped(j.Changed))
	default:
		fmt.Fprintf(&b, "%s rows removed\n", grouped(j.Changed))
	}
	if j.Error != "" {
		fmt.Fprintf(&b, "  %s\n", cli.Printable(j.Error))
	}
	for _, fault := range j.Faults {
		fmt.Fprintf(&b, "  %s\n", cli.Printable(fault))
	}
	return b.String()
}

// grouped is a count as people read it: 165,474.
func grouped(n int64) string {
	digits := strconv.FormatInt(max(n, 0), 10)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
