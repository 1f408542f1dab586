package terraform_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/terraform"
)

// TestAccessTable compares the table of operate/access.md with functions.json, from
// which Terraform makes the grants.
func TestAccessTable(t *testing.T) {
	deployment, err := terraform.ReadDeployment()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../functions/docs/operate/access.md")
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]string{"viewer": "reads", "user": "writes", "none": ""}
	callers := map[terraform.Kind]string{terraform.Public: "everyone, through the load balancer",
		terraform.OfPubSub: "`push-events`", terraform.OfTasks: "`call-tasks`, `call-nightly`"}
	for _, f := range deployment.Functions {
		var tables, topics []string
		tasks, name := "", f.Name
		for verb, names := range map[string][]string{"reads ": f.Access.Reads, "writes ": f.Access.Writes} {
			if len(names) > 0 {
				tables = append(tables, verb+strings.ReplaceAll(strings.Join(names, ", "), "*", "every table"))
			}
		}
		slices.Sort(tables)
		for topic, may := range map[string]bool{"1events": f.Access.Publishes, "2dead letters": f.Access.Buries,
			"3rows of the warehouse": slices.Contains(f.Env, "PUBSUB_WAREHOUSE_TOPIC")} {
			if may {
				topics = append(topics, topic)
			}
		}
		slices.Sort(topics)
		for i := range topics {
			topics[i] = topics[i][1:]
		}
		if slices.Contains(f.Env, "TASKS_QUEUE") {
			tasks = "enqueues"
		}
		if slices.Contains(f.Secrets, "CONSOLE_SECRET") {
			name += ", with `console_host`"
		}
		row := "|"
		for _, cell := range []string{name, callers[f.Kind], strings.Join(tables, "; "), roles[f.Access.Configuration],
			roles[f.Access.Keys], strings.Join(topics, ", "), tasks} {
			if cell != "" {
				cell = " " + cell
			}
			row += cell + " |"
		}
		if !strings.Contains(string(text), "\n"+row+"\n") {
			t.Errorf("operate/access.md lacks the row\n%s", row)
		}
	}
}
