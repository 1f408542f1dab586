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
	"github.com/affinityengine/affinity/shared/job/kinds/backtests"
	"github.com/affinityengine/affinity/shared/job/kinds/crowdbuild"
	"github.com/affinityengine/affinity/shared/job/kinds/daterows"
	"github.com/affinityengine/affinity/shared/job/kinds/linkpreview"
	"github.com/affinityengine/affinity/shared/job/kinds/migration"
	"github.com/affinityengine/affinity/shared/job/kinds/move"
	"github.com/affinityengine/affinity/shared/job/kinds/recompute"
	"github.com/affinityengine/affinity/shared/job/kinds/reenrich"
	"github.com/affinityengine/affinity/shared/job/kinds/reports"
	"github.com/affinityengine/affinity/shared/job/kinds/residents"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentbuild"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentexport"
)

// TestExpiringMatchesJobs compares Firestore's expiry policies with the code: the
// collections of jobs and shards, and the field that holds their expiry time.
func TestExpiringMatchesJobs(t *testing.T) {
	text, err := os.ReadFile("backends.tf")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`expiring = \{ for collection in \[([^\]]*)\] : collection => "(\w+)" \}`).FindSubmatch(text)
	if m == nil {
		t.Fatal("backends.tf sets expiring in another form")
	}
	var expiring []string
	for quoted := range strings.SplitSeq(string(m[1]), ", ") {
		name, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("%s: %v", quoted, err)
		}
		expiring = append(expiring, name)
	}
	want := []string{backtests.Collection.Name, crowdbuild.Collection.Name, daterows.Collection.Name, linkpreview.Collection.Name, migration.Collection.Name, move.Collection.Name, recompute.Collection.Name, reenrich.Collection.Name, reports.Collection.Name, residents.Collection.Name, segmentbuild.Collection.Name, segmentexport.Collection.Name, "shards"}
	if slices.Sort(expiring); !slices.Equal(expiring, want) {
		t.Errorf("documents of %q expire, but jobs and shards are in %q", expiring, want)
	}
	for _, document := range []any{job.Job{}, job.Shard{}} {
		field, _ := reflect.TypeOf(document).FieldByName("ExpiresAt")
		if name, _, _ := strings.Cut(field.Tag.Get("firestore"), ","); name != string(m[2]) {
			t.Errorf("a %T has its expiry time in the field %q, but Firestore reads %q", document, name, m[2])
		}
	}
}
