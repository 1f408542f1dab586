package shared_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write the picture in design/architecture.md")

// rooms are the folders directly under shared/, and those beside it, with what they hold. A
// room imports only rooms above its own line. The packages of layers are in the same order.
var rooms = [][2]string{
	{"terraform", "the deployment; names and schemas that it shares with the code"},
	{"fault", "the error of a refused request"},
	{"deadline", "how long a request may use Bigtable"},
	{"admission", "the bytes that the requests of a process may hold"},
	{"cache", "what a process keeps in memory: what it has read, and what it will write"},
	{"wire", "the parts of binary cells"},
	{"telemetry", "log lines, traces and metrics"},
	{"event", "events, filters, and messages between functions"},
	{"catalog", "objects and index settings"},
	{"score", "strategies, the formula of a profile, the log of a user"},
	{"api", "requests and answers, the Go client, calls of Segment's SDKs"},
	{"rank", "orders of objects, item statistics, boosts, feeds, segments"},
	{"app", "apps, keys, settings, limits, usage, the audit log"},
	{"judge", "what another strategy would change and earn"},
	{"store", "Bigtable: tables, keys and cells"},
	{"queue", "messages in Pub/Sub and tasks in Cloud Tasks"},
	{"web", "routes, authentication, the description of the HTTP API"},
	{"profile", "the protocol that keeps profiles right"},
	{"intake", "how events get into the log, from requests, archives and exports"},
	{"serve", "reads for orders, feeds and segments, with their caches"},
	{"job", "work over all users of an app, and tasks for one"},
	{"backend", "environment variables become clients, and the frame of a function"},
	{"functions", "the deployed functions"},
	{"local", "the engine on one machine, and the helpers of tests"},
	{"scripts", "the command line, benchmarks, packages and checks"},
}

const (
	maxFolders = 24  // directly under shared/
	maxArrows  = 160 // pairs of rooms of which one imports the other
)

// roomOf returns the room of a package of this module.
func roomOf(pkg string) string {
	parts := strings.Split(pkg, "/")
	if parts[0] == "shared" && len(parts) > 1 {
		return parts[1]
	}
	return parts[0]
}

func place(room string) int {
	return slices.IndexFunc(rooms, func(r [2]string) bool { return r[0] == room })
}

// arrows returns which rooms a room imports.
func arrows(packages map[string]listed) map[string][]string {
	all := map[string][]string{}
	for name, p := range packages {
		from := roomOf(name)
		for _, path := range p.Imports {
			imported, own := strings.CutPrefix(path, module)
			if to := roomOf(imported); own && to != from && !slices.Contains(all[from], to) {
				all[from] = append(all[from], to)
			}
		}
	}
	return all
}

func TestRooms(t *testing.T) {
	packages, count := list(t), 0
	for from, imported := range arrows(packages) {
		count += len(imported)
		for _, to := range imported {
			if place(to) >= place(from) {
				t.Errorf("room %s imports room %s, which is not above it", from, to)
			}
		}
	}
	if count > maxArrows {
		t.Errorf("%d arrows between rooms, want at most %d", count, maxArrows)
	}
	folders := 0
	for name := range packages {
		if place(roomOf(name)) < 0 && name != "shared" {
			t.Errorf("%s is in no room of the table", name)
		}
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			folders++
		}
	}
	if folders > maxFolders {
		t.Errorf("%d folders, want at most %d", folders, maxFolders)
	}
	if !slices.IsSortedFunc(layers, func(a, b layer) int { return place(roomOf(a.pkg)) - place(roomOf(b.pkg)) }) {
		t.Error("the packages of layers are not in the order of rooms")
	}
}

// picture draws the floors: a room stands above those that it imports.
func picture(imports map[string][]string) string {
	floor, highest := map[string]int{}, 0
	for _, room := range rooms { // from the ground up
		for _, to := range imports[room[0]] {
			floor[room[0]] = max(floor[room[0]], floor[to]+1)
		}
		highest = max(highest, floor[room[0]])
	}
	var b strings.Builder
	b.WriteString("```\n")
	for n := highest; n >= 0; n-- {
		label := fmt.Sprintf("%2d", n)
		for _, room := range rooms {
			if floor[room[0]] == n {
				fmt.Fprintf(&b, "%s  %-10s %s\n", label, room[0], room[1])
				label = "  "
			}
		}
	}
	b.WriteString("```\n")
	return b.String()
}

// architecture is the page that shows the floors.
const architecture = "../functions/docs/design/architecture.md"

// The page of the architecture shows the floors as they are.
func TestPicture(t *testing.T) {
	const begin, end = "<!-- the floors, by go test ./shared -rewrite -->\n", "<!-- end of the floors -->\n"
	text := read(t, architecture)
	before, rest, found := strings.Cut(text, begin)
	drawn, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("architecture.md has no lines %q and %q", begin, end)
	}
	want := picture(arrows(list(t)))
	if *rewrite {
		if err := os.WriteFile(architecture, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, drawn); diff != "" {
		t.Errorf("go test ./shared -rewrite draws another picture (-want +got):\n%s", diff)
	}
}
