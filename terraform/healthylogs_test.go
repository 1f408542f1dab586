package terraform_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// entry is a log entry: fields by path, as a filter names them. "log_id" is the name
// of its log.
type entry map[string]any

// request is an entry of Cloud Run's log of requests.
func request(status int, latency string) entry {
	e := entry{"resource.type": "cloud_run_revision", "log_id": "run.googleapis.com/requests", "httpRequest.status": float64(status)}
	if latency != "" {
		e["httpRequest.latency"] = latency
	}
	return e
}

// line is a line of the engine.
func line(message string, lagMs float64) entry {
	return entry{"resource.type": "cloud_run_revision", "log_id": "run.googleapis.com/stderr", "jsonPayload.message": message, "jsonPayload.lagMs": lagMs}
}

// read is the line of a stored profile that was read.
func read(ms float64) entry {
	return entry{"resource.type": "cloud_run_revision", "log_id": "run.googleapis.com/stderr", "jsonPayload.message": "stored profile read", "jsonPayload.ms": ms}
}

// TestOnlyHealthyLogsAreExcluded evaluates the exclusions of logs.tf for entries that
// an operator needs, and for others.
func TestOnlyHealthyLogsAreExcluded(t *testing.T) {
	balancer := request(200, "0.01s")
	balancer["resource.type"], balancer["log_id"] = "http_load_balancer", "requests"
	for _, test := range []struct {
		name, filter string
		entry        entry
		excluded     bool
	}{
		{"quick request", "healthy_requests", request(200, "0.012s"), true},
		{"quick push", "healthy_requests", request(204, "0.999999s"), true},
		{"quick redirect", "healthy_requests", request(304, "0.001s"), true},
		{"request of a second", "healthy_requests", request(200, "1s"), false},
		{"slow request", "healthy_requests", request(200, "12.5s"), false},
		{"mistake of a client", "healthy_requests", request(400, "0.002s"), false},
		{"push to repeat", "healthy_requests", request(429, "0.002s"), false},
		{"failure", "healthy_requests", request(503, "0.002s"), false},
		{"request without a latency", "healthy_requests", request(200, ""), false},
		{"request of the load balancer", "healthy_requests", balancer, false},
		{"line of the engine", "healthy_requests", line("events applied", 3), false},
		{"message applied", "healthy_messages", line("events applied", 999), true},
		{"message applied late", "healthy_messages", line("events applied", 1000), false},
		{"dead letter", "healthy_messages", line("message went to the dead-letter topic", 3), false},
		{"quick read", "healthy_reads", read(3.5), true},
		{"read of a second", "healthy_reads", read(1000), false},
		{"message applied", "healthy_reads", line("events applied", 3), false},
		{"quick request", "healthy_messages", request(200, "0.012s"), false},
	} {
		if got := matches(t, exclusion(t, test.filter), test.entry); got != test.excluded {
			t.Errorf("%s: %s excludes it: %v, want %v", test.name, test.filter, got, test.excluded)
		}
	}
}

// TestNoAlertReadsExcludedLines checks the log lines that alerts match: an excluded one
// would open no alert.
func TestNoAlertReadsExcludedLines(t *testing.T) {
	text, err := os.ReadFile("modules/monitoring/alerts.tf")
	if err != nil {
		t.Fatal(err)
	}
	_, matched, found := strings.Cut(string(text), "\n  matched = {\n")
	if !found || strings.Contains(matched, "googleapis.com/requests") {
		t.Fatal("an alert matches the platform's log of requests, or alerts.tf has another form")
	}
	var file metricsFile
	readJSON(t, "modules/monitoring/metrics.json", &file)
	messages := map[string]string{}
	for _, m := range file.Metrics {
		messages[m.Name] = m.Message
	}
	names := regexp.MustCompile(`local\.metrics\["(\w+)"\]`).FindAllStringSubmatch(matched, -1)
	if len(names) < 4 {
		t.Fatalf("found only %d alerts on log lines", len(names))
	}
	for _, name := range names {
		e := line(messages[name[1]], 0)
		if messages[name[1]] == "" || matches(t, exclusion(t, "healthy_requests"), e) || matches(t, exclusion(t, "healthy_messages"), e) || matches(t, exclusion(t, "healthy_reads"), e) {
			t.Errorf("the alert on %s reads lines %q, which are excluded or unknown", name[1], messages[name[1]])
		}
	}
	lines, _ := deployedLines(t)
	for _, l := range lines["events applied"] {
		if l.fields["lagMs"] != "Int64" {
			t.Errorf("%s has no lagMs, which the exclusion reads", l.at)
		}
	}
}

// exclusion returns a filter of logs.tf.
func exclusion(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("logs.tf")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^ +` + name + ` += (".+")$`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("logs.tf has no filter %s", name)
	}
	filter, err := strconv.Unquote(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return filter
}

var comparison = regexp.MustCompile(`^([\w.]+)(<|=|\()("?)([^"]+)"?\)?$`)

// matches evaluates a filter of comparisons that AND joins. As in Logging, a comparison
// with a field that the entry lacks is false.
func matches(t *testing.T, filter string, e entry) bool {
	t.Helper()
	for _, term := range strings.Split(filter, " AND ") {
		m := comparison.FindStringSubmatch(term)
		if m == nil {
			t.Fatalf("the filter has a term of another form: %s", term)
		}
		field, operator, quoted, value := m[1], m[2], m[3] != "", m[4]
		got, there := e[field]
		switch {
		case !there:
			return false
		case operator != "<" && fmt.Sprint(got) != value:
			return false
		case operator == "<" && !(amount(t, fmt.Sprint(got), quoted) < amount(t, value, quoted)):
			return false
		}
	}
	return true
}

// amount is a number, or the seconds of a duration.
func amount(t *testing.T, text string, duration bool) float64 {
	t.Helper()
	if !duration {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d.Seconds()
}
