package terraform_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/migration"
	"github.com/affinityengine/affinity/shared/job/recompute"
	"github.com/affinityengine/affinity/shared/job/reenrich"
)

// TestExpiringMeetsTheCode holds what Firestore is told to collect to the
// collections of jobs and to the field that jobs and shards have the time in.
func TestExpiringMeetsTheCode(t *testing.T) {
	text, err := os.ReadFile("backends.tf")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`expiring = \{ for collection in \[([^\]]*)\] : collection => "(\w+)" \}`).FindSubmatch(text)
	if m == nil {
		t.Fatal("backends.tf sets expiring in another form")
	}
	var told []string
	for quoted := range strings.SplitSeq(string(m[1]), ", ") {
		name, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("%s: %v", quoted, err)
		}
		told = append(told, name)
	}
	want := []string{migration.Collection.Name, recompute.Collection.Name, reenrich.Collection.Name, "shards"}
	if slices.Sort(told); !slices.Equal(told, want) {
		t.Errorf("documents of %q expire, jobs and shards lie in %q", told, want)
	}
	for _, document := range []any{job.Job{}, job.Shard{}} {
		field, _ := reflect.TypeOf(document).FieldByName("ExpiresAt")
		if name, _, _ := strings.Cut(field.Tag.Get("firestore"), ","); name != string(m[2]) {
			t.Errorf("a %T says in %q when it may go, Firestore is told of %q", document, name, m[2])
		}
	}
}
