package reports

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/judge/lift"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// merging is the part of the last shard.
const merging = "report"

// metrics are those of a report.
var metrics = []lift.Metric{lift.Clicks, lift.Conversions, lift.Revenue}

// populations are those of a report: of each it has all metrics.
var populations = []lift.Population{lift.Active, lift.Exposed}

// maxPoints is of how many days before the last one a report says the lift.
const maxPoints = 11

// sums are what some people have shown: of each population, of each metric.
type sums struct {
	Tallies []*lift.Tally  `json:"tallies"`
	Series  []*lift.Series `json:"series"`
}

// newSums returns empty sums of a job.
func newSums(p Params) (s sums, err error) {
	q, err := question(p)
	if err != nil {
		return s, err
	}
	for _, q.Population = range populations {
		for _, q.Metric = range metrics {
			tally, err := lift.NewTally(q)
			if err != nil {
				return s, err
			}
			series, err := lift.NewSeries(q, maxPoints)
			if err != nil {
				return s, err
			}
			s.Tallies, s.Series = append(s.Tallies, tally), append(s.Series, series)
		}
	}
	return s, nil
}

// question is what a job asks, without the metric and the population.
func question(p Params) (lift.Question, error) {
	q := lift.Question{Experiment: p.Experiment, Currency: p.Currency}
	d, err := p.definition()
	if err != nil {
		return q, err
	}
	q.Arms = d.arms()
	for _, of := range []struct {
		text string
		day  *lift.Day
	}{{p.Start, &q.Start}, {p.From, &q.From}, {p.To, &q.To}} {
		if err := of.day.UnmarshalText([]byte(of.text)); err != nil {
			return q, err
		}
	}
	return q, nil
}

func (p Params) definition() (d definition, err error) {
	if err = json.Unmarshal([]byte(p.Definition), &d); err != nil {
		err = fmt.Errorf("decode the definition of experiment %q: %w", p.Experiment, err)
	}
	return d, err
}

func (s sums) add(p lift.Person) {
	for i := 0; i < len(s.Tallies); i += len(metrics) {
		lift.Add(p, s.Tallies[i:i+len(metrics)]...)
		for j := range s.Series[i].Tallies {
			lift.Add(p, s.Series[i].Tallies[j], s.Series[i+1].Tallies[j], s.Series[i+2].Tallies[j])
		}
	}
}

func (s sums) merge(other sums) error {
	if len(other.Tallies) != len(s.Tallies) || len(other.Series) != len(s.Series) {
		return fmt.Errorf("merge sums of %d metrics: want %d", len(other.Tallies), len(s.Tallies))
	}
	for i := range s.Tallies {
		if err := s.Tallies[i].Merge(other.Tallies[i]); err != nil {
			return err
		}
		if err := s.Series[i].Merge(other.Series[i]); err != nil {
			return err
		}
	}
	return nil
}

// place is how far a shard is, as text: of one over users the next of them, of the last one the next shard.
type place struct {
	User  string `json:"user,omitempty"`
	Shard int    `json:"shard,omitempty"`
	Sums  sums   `json:"sums"`
}

// encode returns a value as text: JSON, compressed to less than half of its size.
func encode(v any) (string, error) {
	var text bytes.Buffer
	to := base64.NewEncoder(base64.StdEncoding, &text)
	packed := gzip.NewWriter(to)
	err := json.NewEncoder(packed).Encode(v)
	for _, c := range []io.Closer{packed, to} {
		err = cmp.Or(err, c.Close())
	}
	if err != nil {
		return "", fmt.Errorf("encode sums: %w", err)
	}
	return text.String(), nil
}

func decode(text string, v any) error {
	packed, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader([]byte(text))))
	if err == nil {
		err = json.NewDecoder(packed).Decode(v)
	}
	if err != nil {
		return fmt.Errorf("decode sums: %w", err)
	}
	return nil
}

// begin returns where a shard goes on.
func begin(shard job.Shard, p Params) (at place, err error) {
	if shard.Next != shard.From {
		return at, decode(shard.Next, &at)
	}
	at.User = shard.From
	at.Sums, err = newSums(p)
	return at, err
}

// Following returns the shard that merges.
func (*Work) Following(_ context.Context, _ job.Job, last job.Shard) ([]job.Shard, error) {
	if last.Part == merging {
		return nil, nil
	}
	return []job.Shard{{Part: merging}}, nil
}

// Process does the work of a shard.
func (w *Work) Process(ctx context.Context, j job.Job, app config.App, shard job.Shard, until time.Time,
	progress func(job.Progress) error) (job.Progress, error) {
	p := job.ParamsOf[Params](j)
	at, err := begin(shard, p)
	if err != nil {
		return job.Progress{}, fmt.Errorf("%w: %w", job.ErrFailed, err)
	}
	t := &task{Work: w, job: j, app: app, params: p, shard: shard, at: at, until: until, progress: progress}
	if shard.Part == merging {
		return t.merge(ctx)
	}
	return t.count(ctx)
}

// task is one call of Process.
type task struct {
	*Work
	job      job.Job
	app      config.App
	params   Params
	shard    job.Shard
	at       place
	until    time.Time
	progress func(job.Progress) error
}

// person is a person of a group of users.
type person struct {
	lift.Person
	tokens []string // with events in the days of the report
	orders []order  // in the order of Orders
}

// order is a conversion that names answers.
type order struct {
	at               int64 // ms
	queries, objects []string
	clicked          int64 // ms, when the last click before it had its position
}

// place sets the positions of those orders to which a click has led: of several clicks before an order the last one
// says the position, of those at one instant the one that was higher.
func (p *person) place(at int64, click *event.Event) {
	for i := range p.orders {
		o := &p.orders[i]
		if at > o.at || at < o.clicked || !slices.Contains(o.queries, click.QueryID) {
			continue
		}
		for _, id := range o.objects {
			position, old := click.Position(id), p.Orders[i].Position
			if position > 0 && (at > o.clicked || old == 0 || position < old) {
				o.clicked, p.Orders[i].Position = at, position
			}
		}
	}
}

// count adds up the users of a shard. Only the end of the task's time makes a checkpoint that goes on: the sums are
// larger than what a second of work is worth.
func (t *task) count(ctx context.Context) (job.Progress, error) {
	d, err := t.params.definition()
	if err != nil {
		return job.Progress{}, err
	}
	q := t.at.Sums.Tallies[0].Question
	people := map[*profile.SweptPerson]*person{}
	of := func(p *profile.SweptPerson) *person {
		one := people[p]
		if one == nil {
			one = &person{Person: lift.Person{Arm: d.arm(p.Unit), Days: map[lift.Day]lift.Sums{}}}
			people[p] = one
		}
		return one
	}
	end := min(t.params.AsOf.UnixMilli(), (q.To+1).Time().UnixMilli()-1)
	o := profile.PersonSweep{
		SweepOptions: profile.SweepOptions{AsOf: time.UnixMilli(end), Until: t.until},
		Event: func(p *profile.SweptPerson, token string, e affinity.Event) {
			day := lift.DayOf(time.UnixMilli(e.Time))
			if day < q.Start-before || q.Start <= day && day < q.From {
				return
			}
			one := of(p)
			s := one.Days[day]
			switch e.Type {
			case event.Click:
				s.Clicks++
			case event.Conversion:
				s.Conversions++
			}
			one.Days[day] = s
			if day >= q.From && token != p.Unit && !slices.Contains(one.tokens, token) {
				one.tokens = append(one.tokens, token)
				one.Others = append(one.Others, d.arm(token))
			}
		},
		Exposure: func(p *profile.SweptPerson, e store.Exposure) {
			if e.Experiment == t.params.Experiment && e.Since == t.params.Since && e.At <= end {
				one := of(p)
				one.Exposures = append(one.Exposures, lift.Exposure{At: time.UnixMilli(e.At), Arm: e.Arm})
			}
		},
		Original: func(p *profile.SweptPerson, _ string, at int64, original []byte) error {
			return of(p).earn(at, original, q.From)
		},
		Follows: func(p *profile.SweptPerson) bool { return people[p] != nil && len(people[p].orders) > 0 },
		Clicked: func(p *profile.SweptPerson, at int64, original []byte) error {
			e, err := decoded(original)
			if err == nil {
				of(p).place(at, &e)
			}
			return err
		},
	}
	app := t.app
	app.RetentionDays = t.params.RetentionDays
	var counts Counts
	result := job.Progress{Next: t.shard.Next}
	swept, err := profile.SweepPersons(ctx, t.Profiles, app, store.Range{From: t.at.User, To: t.shard.To}, o,
		func(p profile.SweepProgress) error {
			for _, one := range people {
				t.at.Sums.add(one.Person)
			}
			clear(people)
			counts = Counts{Users: p.Users, Events: p.Events, Faulty: p.Faulty}
			result.Counts, result.Faults = job.Count(counts), p.Faults
			return t.progress(job.Progress{Next: t.shard.Next})
		})
	if err != nil {
		return job.Progress{}, err
	}
	if result.Done = swept.Done; !swept.Done {
		result.Next, err = encode(place{User: swept.Next, Sums: t.at.Sums})
		return result, err
	}
	result.Next = t.shard.To
	if result.Result, err = encode(t.at.Sums); err == nil && len(result.Result) > job.MaxResult {
		err = fmt.Errorf("%w: the sums of %d users have %d bytes, at most %d are kept: "+
			"the users paid in too many currencies for so many arms",
			job.ErrFailed, swept.Users, len(result.Result), job.MaxResult)
	}
	return result, err
}

// decoded returns the event of an original.
func decoded(original []byte) (event.Event, error) {
	o, err := schema.ParseOriginal(original)
	if err != nil {
		return event.Event{}, err
	}
	return o.Decode()
}

// earn adds what a conversion has earned to its day, and keeps those of the report that name answers. Days that the
// report leaves out do not count.
func (p *person) earn(at int64, original []byte, from lift.Day) error {
	day := lift.DayOf(time.UnixMilli(at))
	s, counts := p.Days[day]
	if !counts {
		return nil
	}
	e, err := decoded(original)
	if err != nil {
		return err
	}
	amount, currency := e.Revenue()
	if queries := e.Queries(); day >= from && len(queries) > 0 && e.Subtype != "addToCart" {
		p.orders = append(p.orders, order{at: at, queries: queries, objects: e.ObjectIDs})
		p.Orders = append(p.Orders, lift.Order{Day: day, Revenue: lift.MoneyOf(amount), Currency: currency})
	}
	if amount == 0 {
		return nil
	}
	if s.Revenue == nil {
		s.Revenue = map[string]lift.Money{}
	}
	s.Revenue[currency] += lift.MoneyOf(amount)
	p.Days[day] = s
	return nil
}

// merge merges the sums of all shards before this one, and keeps the report.
func (t *task) merge(ctx context.Context) (job.Progress, error) {
	for ; t.at.Shard < t.shard.N; t.at.Shard++ {
		if t.at.Shard > 0 && !t.runner.Now().Before(t.until) {
			next, err := encode(t.at)
			return job.Progress{Next: next}, err
		}
		shard, err := t.runner.Jobs.Shard(ctx, t.job.App, t.job.ID, t.at.Shard)
		if err != nil {
			return job.Progress{}, err
		}
		if shard.PlannedUsers == 0 && shard.Result == "" {
			continue
		}
		var some sums
		if err := decode(shard.Result, &some); err != nil {
			return job.Progress{}, fmt.Errorf("%w: shard %d: %w", job.ErrFailed, shard.N, err)
		}
		if err := t.at.Sums.merge(some); err != nil {
			return job.Progress{}, fmt.Errorf("%w: shard %d: %w", job.ErrFailed, shard.N, err)
		}
		if err := t.progress(job.Progress{Next: t.shard.Next}); err != nil {
			return job.Progress{}, err
		}
	}
	body, err := json.Marshal(t.at.Sums.body(lift.Metric(t.params.Metric)))
	if err != nil {
		return job.Progress{}, fmt.Errorf("encode the report: %w", err)
	}
	err = t.Reports.Keep(ctx, t.job.App, config.KeptReport{Experiment: t.params.Experiment, Month: t.params.Month,
		Definition: t.params.Hash, Job: t.job.ID, AsOf: t.params.AsOf, Body: string(body)})
	return job.Progress{Next: t.shard.To, Done: true}, err
}

// Body is what a kept report says.
type Body struct {
	Metric lift.Metric `json:"metric"` // that which decides
	// Reports are of active people, Exposed of those who have met the experiment.
	Reports map[lift.Metric]lift.Report `json:"reports"`
	Exposed map[lift.Metric]lift.Report `json:"exposed"`
}

func (s sums) body(decides lift.Metric) Body {
	b := Body{Metric: decides, Reports: map[lift.Metric]lift.Report{}, Exposed: map[lift.Metric]lift.Report{}}
	for i, t := range s.Tallies {
		r, of := t.Report(), b.Reports
		if s.Series[i].Into(&r); r.Population == lift.Exposed {
			of = b.Exposed
		}
		of[r.Metric] = r
	}
	if b.Metric == "" {
		b.Metric = lift.Conversions
		for _, a := range b.Reports[lift.Revenue].Arms {
			if len(a.Revenue) > 0 {
				b.Metric = lift.Revenue
			}
		}
	}
	return b
}
