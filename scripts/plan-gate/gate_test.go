package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// gate runs the command on a file.
func gate(t *testing.T, path string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), []string{path}, &o, &e)
	return code, o.String(), e.String()
}

// The files are parts of plans of terraform/ by the real provider, on the state of a deployment with
// a data region, a dedicated customer and secured keys.
func TestRealPlans(t *testing.T) {
	const rules = `gc_rules drops cells that were kept: it was {"rules":[{"max_age":"366d"}]} and is {"rules":[{"max_age":"2184h"}]}`
	for file, want := range map[string][]string{
		"upgrade": nil,
		"longer":  nil,
		"keys": {
			`google_kms_crypto_key.parents[0]: is destroyed: all its versions go, and so does what they encrypted`,
			`google_kms_key_ring.affinity[0]: is destroyed: Terraform forgets it, and Google keeps its name`,
		},
		"short": {`module.bigtable.google_bigtable_gc_policy.this["events/e"]: ` + rules},
		"region": {
			`module.regional_bigtable["us"].google_bigtable_instance.this: is destroyed: its tables and their backups go`,
			`module.regional_bigtable["us"].google_bigtable_table.this["users"]: is destroyed: its rows go`,
			`module.regional_events["us"].google_pubsub_subscription.lane["events"]: is destroyed: messages that wait go`,
			`module.regional_tasks["us"].google_cloud_tasks_queue.worker["tasks"]: is destroyed: ` + held["google_cloud_tasks_queue"],
		},
		"customer": {
			`module.events.google_pubsub_subscription.lane["customer-acme"]: is destroyed: messages that wait go`,
			`module.events.google_pubsub_topic.lane["customer-acme"]: is destroyed: messages that it keeps for a replay go`,
			`module.tasks.google_cloud_tasks_queue.worker["tasks-acme"]: is destroyed: ` + held["google_cloud_tasks_queue"],
		},
	} {
		wantCode := 1
		if want == nil {
			wantCode, want = 0, []string{"nothing is lost"}
		}
		code, out, errs := gate(t, filepath.Join("testdata", file+".json"))
		if code != wantCode || out != strings.Join(want, "\n")+"\n" {
			t.Errorf("%s: code %d, want %d: %s%s, want %q", file, code, wantCode, out, errs, want)
		}
	}
}

func TestLosses(t *testing.T) {
	const bucket, rule = "google_storage_bucket", `{"lifecycle_rule":[{"action":[{"type":"Delete"}],"condition":[%s]}]}`
	aged := func(condition string) string { return fmt.Sprintf(rule, condition) }
	for _, test := range []struct{ kind, before, after, unknown, want string }{
		{"google_pubsub_topic", `{"message_retention_duration":"259200s"}`, `{"message_retention_duration":"86400s"}`, `{}`, "keeps applied messages for 1 day, before for 3 days"},
		{"google_pubsub_topic", `{"message_retention_duration":"259200s"}`, `{"message_retention_duration":null}`, `{}`, "for 0 days, before for 3 days"},
		{"google_pubsub_topic", `{"message_retention_duration":"259200s"}`, `{}`, `{"message_retention_duration":true}`, "message_retention_duration is known only after the apply"},
		{"google_pubsub_topic", `{"message_retention_duration":"soon"}`, `{"message_retention_duration":"86400s"}`, `{}`, `message_retention_duration cannot be read: "soon" is no duration`},
		{"google_pubsub_topic", `{"message_retention_duration":null}`, `{"message_retention_duration":"86400s"}`, `{}`, ""},
		{"google_pubsub_topic", `{"name":"events"}`, `{"name":"events"}`, `{"id":true}`, ""},
		{"google_pubsub_subscription", `{"expiration_policy":[{"ttl":""}]}`, `{"expiration_policy":[]}`, `{}`, "keeps an unused subscription for 31 days, before for ever"},
		{"google_pubsub_subscription", `{"expiration_policy":[{"ttl":"86400s"}]}`, `{"expiration_policy":[{"ttl":""}]}`, `{}`, ""},
		{"google_pubsub_subscription", `{"message_retention_duration":"604800s"}`, `{"message_retention_duration":"600s"}`, `{}`, "keeps waiting messages for 10m0s, before for 7 days"},
		{"google_firestore_backup_schedule", `{"retention":"604800s"}`, `{"retention":"259200s"}`, `{}`, "keeps backups for 3 days"},
		{"google_firestore_database", `{"point_in_time_recovery_enablement":"POINT_IN_TIME_RECOVERY_ENABLED"}`, `{"point_in_time_recovery_enablement":"POINT_IN_TIME_RECOVERY_DISABLED"}`, `{}`, "is POINT_IN_TIME_RECOVERY_DISABLED"},
		{"google_firestore_database", `{"delete_protection_state":"DELETE_PROTECTION_ENABLED"}`, `{}`, `{"delete_protection_state":true}`, "is known only after the apply"},
		{"google_bigtable_table", `{"automated_backup_policy":[{"retention_period":"168h0m0s"}]}`, `{"automated_backup_policy":[{"retention_period":"0"}]}`, `{}`, "keeps backups for 0 days, before for 7 days"},
		{"google_bigtable_table", `{"deletion_protection":"PROTECTED"}`, `{"deletion_protection":"UNPROTECTED"}`, `{}`, "deletion_protection was PROTECTED and is UNPROTECTED"},
		{"google_bigtable_table", `{"column_family":[{"family":"e"},{"family":"h"}]}`, `{"column_family":[{"family":"h"}]}`, `{}`, "column_family e is removed, and with it its cells"},
		{"google_bigtable_table", `{"column_family":[{"family":"h"}]}`, `{"column_family":[{"family":"e"},{"family":"h"}]}`, `{"column_family":[{},{}]}`, ""},
		{"google_bigtable_instance", `{"cluster":[{"cluster_id":"a"},{"cluster_id":"b"}]}`, `{"cluster":[{"cluster_id":"b"}]}`, `{}`, "cluster a is removed, and with it what the other clusters have not copied"},
		{"google_bigtable_instance", `{"cluster":[{"cluster_id":"a","autoscaling_config":[{"max_nodes":1}]}]}`, `{"cluster":[{"cluster_id":"a","autoscaling_config":[{"max_nodes":2}]}]}`, `{}`, ""},
		{"google_bigquery_table", `{"time_partitioning":[{"expiration_ms":null}]}`, `{"time_partitioning":[{"expiration_ms":86400000}]}`, `{}`, "keeps rows for 1 day, before for ever"},
		{"google_bigquery_table", `{"deletion_protection":true}`, `{"deletion_protection":false}`, `{}`, "deletion_protection was true and is false"},
		{"google_bigquery_dataset", `{"max_time_travel_hours":"168"}`, `{"max_time_travel_hours":"48"}`, `{}`, "keeps deleted rows for 2 days, before for 7 days"},
		{"google_kms_crypto_key", `{"rotation_period":"7776000s"}`, `{"rotation_period":null}`, `{}`, "the key is rotated no longer"},
		{"google_kms_crypto_key", `{"rotation_period":"7776000s"}`, `{"rotation_period":"2592000s"}`, `{}`, ""},
		{"google_cloud_tasks_queue", `{"deletion_policy":"PREVENT"}`, `{"deletion_policy":"DELETE"}`, `{}`, "deletion_policy was PREVENT and is DELETE"},
		{"google_cloud_tasks_queue", `{"deletion_policy":"DELETE"}`, `{"deletion_policy":"PREVENT"}`, `{}`, ""},
		{bucket, `{"force_destroy":false}`, `{"force_destroy":true}`, `{}`, "force_destroy was false and is true"},
		{bucket, `{"versioning":[{"enabled":true}]}`, `{"versioning":[]}`, `{}`, "versioning ends"},
		{bucket, aged(`{"age":30,"with_state":"ANY"}`), aged(`{"age":7}`), `{}`, "lifecycle_rule deletes objects that were kept: age 7, before age 30"},
		{bucket, aged(`{"age":7}`), aged(`{"age":30,"matches_prefix":["tmp/"]}`), `{}`, ""},
		{bucket, aged(`{"age":7,"matches_prefix":["tmp/"]}`), aged(`{"age":7,"matches_prefix":[]}`), `{}`, "deletes objects that were kept: age 7"},
		{bucket, `{"lifecycle_rule":[]}`, aged(`{"age":7}`), `{}`, "before none"},
		{bucket, aged(`{"age":7}`), `{"lifecycle_rule":[]}`, `{}`, ""},
		{bucket, aged(`{"age":7}`), `{}`, `{"lifecycle_rule":true}`, "lifecycle_rule is known only after the apply"},
		{"google_bigtable_gc_policy", `{"gc_rules":null}`, `{"gc_rules":"{\"rules\":[{\"max_version\":1}]}"}`, `{}`, "drops cells that were kept"},
		{"google_bigtable_gc_policy", `{"gc_rules":"{\"rules\":[{\"max_age\":\"24h\"}]}"}`, `{"gc_rules":"{\"rules\":[{\"max_age\":\"1d\"}]}"}`, `{}`, ""},
		{"google_bigtable_gc_policy", `{"gc_rules":"{}"}`, `{"gc_rules":"{\"rules\":[{\"max_age\":\"1d\"}]}"}`, `{}`, "cannot be compared"},
		{"google_bigtable_gc_policy", `{"gc_rules":"{\"rules\":[{\"max_version\":1}]}"}`, `{}`, `{"gc_rules":true}`, "gc_rules is known only after the apply"},
	} {
		text := fmt.Sprintf(`{"planned_values":{},"resource_changes":[{"address":"a.b","mode":"managed","type":%q,"change":{"actions":["update"],"before":%s,"after":%s,"after_unknown":%s}}]}`,
			test.kind, test.before, test.after, test.unknown)
		p, err := decode([]byte(text))
		if err != nil {
			t.Fatal(text, err)
		}
		if got := strings.Join(p.losses(), "\n"); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s from %s to %s: %q, want %q", test.kind, test.before, test.after, got, test.want)
		}
	}
}

func TestDestructions(t *testing.T) {
	for change, want := range map[string]string{
		`"type":"google_bigtable_table","change":{"actions":["delete"],"before":{"name":"users"},"after":null,"after_unknown":false}`:                                                       "a.b: is destroyed: its rows go",
		`"type":"google_bigtable_table","change":{"actions":["delete","create"],"before":{},"after":{},"after_unknown":{"id":true},"replace_paths":[["name"],["row_key_schema"],["name"]]}`: "a.b: is replaced because name and row_key_schema changes: its rows go",
		`"type":"google_bigtable_table","deposed":"1f","change":{"actions":["delete"],"before":{},"after":null,"after_unknown":false}`:                                                      "a.b: an object that it replaced before is destroyed: its rows go",
		`"type":"google_bigtable_table","change":{"actions":["forget"],"before":{},"after":null,"after_unknown":false}`:                                                                     "",
		`"type":"google_bigquery_table","change":{"actions":["delete"],"before":{"view":[{"query":"SELECT 1"}]},"after":null,"after_unknown":false}`:                                        "",
		`"type":"google_pubsub_topic","change":{"actions":["create"],"before":null,"after":{"message_retention_duration":null},"after_unknown":{"id":true}}`:                                "",
		`"type":"google_cloud_run_service_iam_member","change":{"actions":["delete"],"before":{},"after":null,"after_unknown":false}`:                                                       "",
	} {
		p, err := decode([]byte(`{"planned_values":{},"resource_changes":[{"address":"a.b","mode":"managed",` + change + `}]}`))
		if got := strings.Join(p.losses(), "\n"); err != nil || got != want {
			t.Errorf("%s: %q (%v), want %q", change, got, err, want)
		}
	}
}

// Rules are compared by what they drop, which here is tried cell by cell.
func TestRulesAreComparedByWhatTheyDrop(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		before, after := randomRule(random, 3), randomRule(random, 3)
		worse := false
		for hours := range 6 {
			for versions := range 6 {
				worse = worse || dropped(after, hours, versions) && !dropped(before, hours, versions)
			}
		}
		var c change
		c.Change.Before, c.Change.After = map[string]any{"gc_rules": text(t, before)}, map[string]any{"gc_rules": text(t, after)}
		if got := c.collected(); (len(got) > 0) != worse {
			t.Fatalf("from %s to %s: %q, want a loss: %v", text(t, before), text(t, after), got, worse)
		}
	}
}

func randomRule(random *rand.Rand, depth int) rule {
	switch random.IntN(2 + min(depth, 1)) {
	case 0:
		return rule{MaxAge: fmt.Sprintf("%dh", 1+random.IntN(4))}
	case 1:
		return rule{MaxVersion: float64(1 + random.IntN(4))}
	}
	r := rule{Mode: []string{"union", "intersection"}[random.IntN(2)]}
	for range 1 + random.IntN(3) {
		r.Rules = append(r.Rules, randomRule(random, depth-1))
	}
	return r
}

// dropped says whether Bigtable drops a cell of that age with so many newer versions.
func dropped(r rule, hours, newer int) bool {
	if r.MaxAge != "" {
		age, err := time.ParseDuration(r.MaxAge)
		return err == nil && time.Duration(hours)*time.Hour > age
	}
	if r.MaxVersion > 0 {
		return newer >= int(r.MaxVersion)
	}
	for _, one := range r.Rules {
		if d := dropped(one, hours, newer); d == (r.Mode == "union") {
			return d
		}
	}
	return r.Mode == "intersection"
}

func text(t *testing.T, r rule) string {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestWhatIsNoPlan(t *testing.T) {
	for content, want := range map[string]string{
		`{"format_version":"1.0","values":{}}`:     "it is no plan: terraform show -json of a plan has planned_values",
		`{"planned_values":{},"errored":true}`:     "the plan ended with an error",
		`{"planned_values":{},"resource_changes":`: "it is no JSON of a plan",
		"no plan": "terraform",
	} {
		path := filepath.Join(t.TempDir(), "plan")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out, errs := gate(t, path); code != 2 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: code %d: %s%s, want 2 and %q", content, code, out, errs, want)
		}
	}
	if code, _, errs := gate(t, filepath.Join(t.TempDir(), "none")); code != 2 || !strings.Contains(errs, "no such file") {
		t.Errorf("no file: code %d: %s", code, errs)
	}
	var out bytes.Buffer
	if code := run(t.Context(), nil, &out, &out); code != 2 || out.String() != usage {
		t.Errorf("no arguments: code %d: %s", code, out.String())
	}
}

// A saved plan is read as Terraform shows it. The provider is the one within Terraform.
func TestSavedPlan(t *testing.T) {
	if _, err := exec.LookPath("terraform"); err != nil {
		t.Skip("terraform is not installed")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(`resource "terraform_data" "one" {}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init"}, {"plan", "-out=plan"}} {
		c := exec.CommandContext(t.Context(), "terraform", args...)
		c.Dir, c.Env = dir, append(os.Environ(), "CHECKPOINT_DISABLE=1", "TF_CLI_CONFIG_FILE=/dev/null")
		if text, err := c.CombinedOutput(); err != nil {
			t.Fatal(err, string(text))
		}
	}
	if code, out, errs := gate(t, filepath.Join(dir, "plan")); code != 0 || out != "nothing is lost\n" {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
}

// harmless are the types of terraform/ that hold nothing: an apply makes them again.
const harmless = `_iam_|_compute_|_monitoring_|_certificate_manager_|google_(bigtable_(app_profile|gc_policy)|
bigquery_data_transfer_config|billing_budget|cloud_scheduler_job|cloudfunctions2_function|cloud_run_v2_service|dns_record_set|
firestore_(field|index)|logging_(metric|project_exclusion)|project_service|service_account|storage_bucket_object)$`

// A type that is new in terraform/ is either held or harmless.
func TestEveryTypeIsJudged(t *testing.T) {
	none := regexp.MustCompile(strings.ReplaceAll(harmless, "\n", ""))
	files, err := filepath.Glob("../../terraform/*.tf")
	modules, err2 := filepath.Glob("../../terraform/modules/*/*.tf")
	if err != nil || err2 != nil || len(files) == 0 || len(modules) == 0 {
		t.Fatal("no files of terraform/", err, err2)
	}
	seen := map[string]bool{}
	for _, file := range append(files, modules...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^resource "(google_[a-z0-9_]+)"`).FindAllStringSubmatch(string(text), -1) {
			kind := m[1]
			if seen[kind] = true; (held[kind] != "") == none.MatchString(kind) {
				t.Errorf("%s: add %s to held, with what goes with it, or to harmless", file, kind)
			}
		}
	}
	if len(seen) < len(held) {
		t.Errorf("terraform/ has only the types %v", seen)
	}
}
