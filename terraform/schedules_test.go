package terraform_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryScheduleHasAlertAndPause checks that the alert on rounds that do not begin, and the
// commands that pause at once, find every job of Cloud Scheduler by its name.
func TestEveryScheduleHasAlertAndPause(t *testing.T) {
	read := func(file, form string) []string {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(form).FindAllStringSubmatch(string(text), -1)
		if len(m) == 0 {
			t.Fatalf("%s has nothing in the form %s", file, form)
		}
		var found []string
		for _, one := range m {
			found = append(found, one[1])
		}
		return found
	}
	const file = "modules/tasks/schedules.tf"
	prefix := read(file, `name += "([a-z-]+)\$\{each\.key\}"`)
	jobs := []string{prefix[0] + read(file, `\{ ([a-z]+) = \{\n`)[0]}
	for _, key := range read(file, `: "([a-z-]+\$\{name\})" => \{`) {
		jobs = append(jobs, prefix[0]+strings.ReplaceAll(key, "${name}", "acme"))
	}
	if len(prefix) != 1 || len(jobs) != 3 {
		t.Fatalf("%s has jobs that this test does not read: %q of %q", file, jobs, prefix)
	}
	for where, form := range map[string]string{
		"modules/monitoring/alerts.tf":       read("modules/monitoring/alerts.tf", `labels\.job_id=~\\"([^"\\]+)\\"`)[0],
		"functions/docs/operate/failover.md": read("../functions/docs/operate/failover.md", `scheduler jobs list .*grep -E '([^']+)'`)[0],
	} {
		for _, job := range jobs {
			if !regexp.MustCompile(form).MatchString(job) {
				t.Errorf("%s looks for %s, which does not find the job %s", where, form, job)
			}
		}
	}
	// Jobs elsewhere would not be read above.
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".tf" {
			return err
		}
		text, err := os.ReadFile(path)
		if n := strings.Count(string(text), `resource "google_cloud_scheduler_job"`); n != strings.Count(path, file) {
			t.Errorf("%s makes %d kinds of jobs of Cloud Scheduler", path, n)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
