package upgrade

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/terraform"
)

// TestUpgradeOnlyAdds compares the configuration of an earlier commit with that of this
// checkout. An upgrade applies the configuration before the functions, and a rollback takes
// back functions alone: what the earlier functions need must be there.
func TestUpgradeOnlyAdds(t *testing.T) {
	if *from == "" {
		t.Skip("no earlier commit is given: scripts/check-upgrade names one, as -from does")
	}
	before := map[string][]byte{}
	for _, name := range []string{"functions.json", "bigtable.json", "modules/edge/variables.tf"} {
		text, err := exec.CommandContext(t.Context(), "git", "show", *from+":terraform/"+name).Output()
		if err != nil {
			t.Fatalf("read %s of %s: %v", name, *from, err)
		}
		before[name] = text
	}
	now := map[string][]byte{}
	for name := range before {
		text, err := os.ReadFile("../../terraform/" + name)
		if err != nil {
			t.Fatal(err)
		}
		now[name] = text
	}
	for _, name := range missing(t, before, now) {
		t.Errorf("%s is in %s and not in this checkout: functions of that commit need it. Take it away one release later", name, *from)
	}
}

// A configuration that lacks a family, a variable, a queue or a path is found.
func TestWhatAConfigurationTakesAway(t *testing.T) {
	const tables = `{"tables": [{"name": "users", "families": [{"name": "p"}, {"name": "h"}]}]}`
	const functions = `{"queue": "worker", "refreshQueues": {"name": "refreshes", "count": 2}, "topics": {"events": {"name": "events"}},
		"functions": [{"name": "rank", "entryPoint": "Rank", "env": ["REGIONS", "REGION"]}]}`
	const routes = "    rank = [\"/1/rank\", \"/1/feeds\"]\n"
	files := func(tables, functions, routes string) map[string][]byte {
		return map[string][]byte{"bigtable.json": []byte(tables), "functions.json": []byte(functions), "modules/edge/variables.tf": []byte(routes)}
	}
	before := files(tables, functions, routes)
	after := files(`{"tables": [{"name": "users", "families": [{"name": "p"}]}, {"name": "new"}]}`,
		`{"queue": "others", "refreshQueues": {"name": "refreshes", "count": 1}, "topics": {"events": {"name": "events"}},
		"functions": [{"name": "rank", "entryPoint": "Rank", "env": ["REGION", "NEW"]}]}`, "    rank = [\"/1/rank\"]\n")
	if list := missing(t, before, before); len(list) > 0 {
		t.Errorf("the same configuration lacks %q", list)
	}
	want := []string{"family users/h", "path /1/feeds", "queue refreshes-1", "queue worker", "variable REGIONS of rank"}
	if got := missing(t, before, after); !slices.Equal(got, want) {
		t.Errorf("it lacks %q, want %q", got, want)
	}
}

// missing returns what one configuration has and another one has not, in order.
func missing(t *testing.T, before, now map[string][]byte) (list []string) {
	t.Helper()
	has := parts(t, now)
	for _, part := range parts(t, before) {
		if !slices.Contains(has, part) {
			list = append(list, part)
		}
	}
	return list
}

var edgePath = regexp.MustCompile(`(?m)"(/[A-Za-z0-9_./-]+)"`)

// parts names all that functions may need of a configuration.
func parts(t *testing.T, files map[string][]byte) (list []string) {
	t.Helper()
	var d terraform.Deployment
	var tables struct {
		Tables []struct {
			Name     string
			Families []struct{ Name string }
		}
	}
	if err := json.Unmarshal(files["functions.json"], &d); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(files["bigtable.json"], &tables); err != nil {
		t.Fatal(err)
	}
	for _, table := range tables.Tables {
		for _, family := range table.Families {
			list = append(list, "family "+table.Name+"/"+family.Name)
		}
	}
	for _, fn := range d.Functions {
		list = append(list, "function "+fn.Name+" as "+fn.EntryPoint)
		for _, variable := range fn.Variables() {
			list = append(list, "variable "+variable+" of "+fn.Name)
		}
	}
	for _, topic := range []terraform.Topic{d.Topics.Events, d.Topics.SlowEvents, d.Topics.DeadLetters, {Name: d.Topics.Warehouse}} {
		list = append(list, "topic "+topic.Name, "subscription "+topic.Subscription)
	}
	list = append(list, "queue "+d.Queue, "queue "+d.PurgeQueue)
	list = append(list, queuesOf(d.RefreshQueues)...)
	for _, path := range edgePath.FindAllSubmatch(files["modules/edge/variables.tf"], -1) {
		list = append(list, "path "+string(path[1]))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func queuesOf(queues terraform.RefreshQueues) (list []string) {
	for i := range queues.Count {
		list = append(list, fmt.Sprintf("queue %s-%d", queues.Name, i))
	}
	return list
}
