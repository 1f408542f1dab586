package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// held says what goes with a resource that is destroyed. Other resources hold nothing that an
// apply does not make again.
var held = map[string]string{
	"google_artifact_registry_repository": "the images of all revisions go",
	"google_bigquery_dataset":             "its tables go",
	"google_bigquery_table":               "its rows go",
	"google_bigtable_instance":            "its tables and their backups go",
	"google_bigtable_table":               "its rows go",
	"google_cloud_tasks_queue":            "tasks that wait go, and its name stays reserved for a week",
	"google_firestore_backup_schedule":    "no more backups are made",
	"google_firestore_database":           "its documents go",
	"google_kms_crypto_key":               "all its versions go, and so does what they encrypted",
	"google_kms_key_ring":                 "Terraform forgets it, and Google keeps its name",
	"google_pubsub_subscription":          "messages that wait go",
	"google_pubsub_topic":                 "messages that it keeps for a replay go",
	"google_storage_bucket":               "its objects go",
}

const (
	forever = time.Duration(math.MaxInt64)
	days    = 24 * time.Hour
)

// keeps is a value that says for how long Google keeps something.
type keeps struct {
	path   string
	what   string
	absent time.Duration // what Google does without a value
	empty  time.Duration // and with an empty text; 0: the same
	unit   time.Duration // that of a plain number
}

var kept = map[string][]keeps{
	"google_bigquery_dataset": {
		{path: "default_partition_expiration_ms", what: "rows", absent: forever, unit: time.Millisecond},
		{path: "default_table_expiration_ms", what: "tables", absent: forever, unit: time.Millisecond},
		{path: "max_time_travel_hours", what: "deleted rows", absent: 7 * days, unit: time.Hour},
	},
	"google_bigquery_table": {
		{path: "time_partitioning.0.expiration_ms", what: "rows", absent: forever, unit: time.Millisecond},
	},
	"google_bigtable_table": {
		{path: "automated_backup_policy.0.retention_period", what: "backups"},
		{path: "change_stream_retention", what: "changes"},
	},
	"google_firestore_backup_schedule": {{path: "retention", what: "backups"}},
	"google_kms_crypto_key": {
		{path: "destroy_scheduled_duration", what: "destroyed versions", absent: 30 * days},
	},
	"google_pubsub_subscription": {
		{path: "message_retention_duration", what: "waiting messages", absent: 7 * days},
		{path: "expiration_policy.0.ttl", what: "an unused subscription", absent: 31 * days, empty: forever},
	},
	"google_pubsub_topic": {{path: "message_retention_duration", what: "applied messages"}},
	"google_storage_bucket": {
		{path: "retention_policy.0.retention_period", what: "protected objects", unit: time.Second},
		{path: "soft_delete_policy.0.retention_duration_seconds", what: "deleted objects", absent: 7 * days,
			unit: time.Second},
	},
}

// shorter returns which values keep something for a shorter time than before.
func (c change) shorter() []string {
	var reasons []string
	for _, k := range kept[c.Type] {
		before, err := k.read(c.Change.Before)
		if err == nil && c.unknown(k.path) {
			err = fmt.Errorf("%s is known only after the apply, and %s were kept for %s", k.path, k.what,
				span(before))
		}
		var after time.Duration
		if err == nil {
			after, err = k.read(c.Change.After)
		}
		switch {
		case err != nil:
			reasons = append(reasons, err.Error())
		case after < before:
			reasons = append(reasons, fmt.Sprintf("%s keeps %s for %s, before for %s", k.path, k.what,
				span(after), span(before)))
		}
	}
	return reasons
}

func (k keeps) read(values map[string]any) (time.Duration, error) {
	v := at(values, k.path)
	switch {
	case v == "" && k.empty > 0:
		return k.empty, nil
	case v == nil, v == "":
		return k.absent, nil
	}
	d, err := duration(v, k.unit)
	if err != nil {
		return 0, fmt.Errorf("%s cannot be read: %w", k.path, err)
	}
	return d, nil
}

// duration reads a number of units, or a text with units, of which d is a day.
func duration(v any, unit time.Duration) (time.Duration, error) {
	text := fmt.Sprint(v)
	if n, ok := v.(float64); ok {
		text = strconv.FormatFloat(n, 'f', -1, 64)
	}
	if n, err := strconv.ParseFloat(strings.TrimSuffix(text, "d"), 64); err == nil {
		if strings.HasSuffix(text, "d") {
			unit = days
		}
		return bounded(n * float64(unit)), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is no duration", text)
	}
	return d, nil
}

func bounded(n float64) time.Duration {
	if n >= float64(forever) {
		return forever
	}
	return time.Duration(n)
}

// span is a duration for people.
func span(d time.Duration) string {
	switch {
	case d == forever:
		return "ever"
	case d == days:
		return "1 day"
	case d%days == 0:
		return fmt.Sprintf("%d days", d/days)
	}
	return d.String()
}

// protections are values that stop a destruction, of any type, and what they are where they
// protect. What follows them weakens the protection.
var protections = map[string][]any{
	"deletion_protection":               {true, "PROTECTED"},
	"deletion_policy":                   {"PREVENT"},
	"delete_protection_state":           {"DELETE_PROTECTION_ENABLED"},
	"point_in_time_recovery_enablement": {"POINT_IN_TIME_RECOVERY_ENABLED"},
	"force_destroy":                     {false},
}

func (c change) unprotected() []string {
	var reasons []string
	for name, on := range protections {
		before, after := c.Change.Before[name], c.Change.After[name]
		if !slices.Contains(on, before) || !c.unknown(name) && slices.Contains(on, after) {
			continue
		}
		text := fmt.Sprintf("%s was %v and is %v", name, before, after)
		if c.unknown(name) {
			text = fmt.Sprintf("%s was %v and is known only after the apply", name, before)
		}
		reasons = append(reasons, text)
	}
	slices.Sort(reasons)
	return reasons
}
