package job

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Details keeps what jobs and shards say of users, in a region: that of their app if the name is empty. A row is a
// job or a shard. It has versions, of which its document names the valid one.
type Details interface {
	// PutJobDetails stores a version of the details of a row. ended says that the row does
	// not change any more.
	PutJobDetails(ctx context.Context, app, region, row, version string, ended bool, details []byte) error
	// JobDetails returns one version of the details of each row, by row. It leaves out
	// rows that do not have the version.
	JobDetails(ctx context.Context, app, region string, versions map[string]string) (map[string][]byte, error)
	// DropJobDetails deletes versions of a row.
	DropJobDetails(ctx context.Context, app, region, row string, versions ...string) error
	// DropOpenJobDetails deletes the versions of a row that were not stored as ended.
	DropOpenJobDetails(ctx context.Context, app, region, row string) error
	// ForgetJobDetails deletes the rows of an app whose names begin with a prefix, in all its regions.
	ForgetJobDetails(ctx context.Context, app, prefix string) error
}

// details are the fields of a job or a shard that may name users.
type details struct {
	From   string   `json:"from,omitempty"`
	To     string   `json:"to,omitempty"`
	Next   string   `json:"next,omitempty"`
	Faults []string `json:"faults,omitempty"`
	Result string   `json:"result,omitempty"`
	Error  string   `json:"error,omitempty"`
}

func (d details) empty() bool { return d.equal(details{}) }

func (d details) equal(e details) bool {
	return slices.Equal(d.Faults, e.Faults) && d.From == e.From && d.To == e.To && d.Next == e.Next &&
		d.Result == e.Result && d.Error == e.Error
}

// divided is a Job or a Shard, whose details can be kept apart from its document.
type divided[T any] interface {
	// details returns the details that the document holds, and the version that it names.
	details() (details, string)
	// with returns the document with other details and another version.
	with(d details, version string) T
	// region is where the details lie.
	region() string
	over() bool
	// lost returns what is left without details, false if that is of no use.
	lost() (T, bool)
}

// lostText stands for the error of what has ended and lost its details.
const lostText = "the details are not stored any more"

func (j Job) details() (details, string) { return details{Error: j.Error}, j.Details }

func (j Job) with(d details, version string) Job {
	j.Error, j.Details = d.Error, version
	return j
}

func (j Job) region() string { return j.Region }

func (j Job) over() bool { return j.State.Ended() }

func (j Job) lost() (Job, bool) {
	if j.State != Done {
		j.Error = lostText
	}
	j.Details = ""
	return j, true
}

func (s Shard) details() (details, string) {
	return details{s.From, s.To, s.Next, s.Faults, s.Result, s.Error}, s.Details
}

func (s Shard) with(d details, version string) Shard {
	s.From, s.To, s.Next, s.Faults, s.Result, s.Error = d.From, d.To, d.Next, d.Faults, d.Result, d.Error
	s.Details = version
	return s
}

func (s Shard) region() string { return s.Region }

func (s Shard) over() bool { return s.State != ShardOpen }

func (s Shard) lost() (Shard, bool) {
	if s.State == ShardFailed {
		s.Error = lostText
	}
	s.Details = ""
	return s, s.over()
}

func newVersion() string { return strings.ToLower(rand.Text()) }

// joined returns documents with their details. missing are the indexes of those whose
// version is not stored.
func joined[T divided[T]](ctx context.Context, d Details, app string, row func(T) string,
	documents []T) (all []T, missing []int, err error) {
	versions := map[string]map[string]string{} // of rows, by region
	for _, document := range documents {
		if _, version := document.details(); version != "" {
			if versions[document.region()] == nil {
				versions[document.region()] = map[string]string{}
			}
			versions[document.region()][row(document)] = version
		}
	}
	found := map[string][]byte{}
	for region, rows := range versions {
		there, err := d.JobDetails(ctx, app, region, rows)
		if err != nil {
			return nil, nil, err
		}
		maps.Copy(found, there)
	}
	all = make([]T, len(documents))
	for i, document := range documents {
		_, version := document.details()
		if version == "" {
			all[i] = document
			continue
		}
		value, ok := found[row(document)]
		if !ok {
			missing = append(missing, i)
			continue
		}
		var apart details
		if err := json.Unmarshal(value, &apart); err != nil {
			return nil, nil, fmt.Errorf("decode the details of %s: %w", row(document), err)
		}
		all[i] = document.with(apart, "")
	}
	return all, missing, nil
}
