package store_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/store"
)

func declared(t *testing.T) []store.Table {
	t.Helper()
	tables, err := store.Tables()
	must.Succeed(t, err)
	return tables
}

func ofEvents(table string) bool {
	return table == store.TableEvents || table == store.TableEventsNarrow
}

// The file that Terraform reads and what this package reads and writes are the same.
func TestDeclaredTables(t *testing.T) {
	got := map[string][]string{}
	for _, table := range declared(t) {
		for _, f := range table.Families {
			got[table.Name] = append(got[table.Name], f.Name)
		}
	}
	if diff := cmp.Diff(store.Families, got); diff != "" {
		t.Errorf("families (-written +declared):\n%s", diff)
	}
}

// Whatever the longest retention, only events have an age, which is longer, and
// of everything else nothing goes but what a newer version supersedes.
func TestDeclaredPolicies(t *testing.T) {
	for _, table := range declared(t) {
		for _, f := range table.Families {
			if want := ofEvents(table.Name); (f.Collect == store.ByAge) != want || (f.Collect == store.ButNewest) == want {
				t.Errorf("%s:%s is collected by %q", table.Name, f.Name, f.Collect)
			}
			rapid.Check(t, func(t *rapid.T) {
				days := rapid.OneOf(rapid.IntRange(-1, 40_000), rapid.Int()).Draw(t, "days")
				if f.Days > 0 {
					want := bigtable.UnionPolicy(bigtable.MaxVersionsPolicy(1), bigtable.MaxAgePolicy(time.Duration(f.Days)*24*time.Hour))
					if got := f.Policy(days); got.String() != want.String() || ofEvents(table.Name) {
						t.Errorf("%s:%s, %d days: %v, want %v", table.Name, f.Name, days, got, want)
					}
					return
				}
				switch got := f.Policy(days).(type) {
				case bigtable.MaxVersionsGCPolicy:
					want := bigtable.MaxVersionsGCPolicy(1)
					if ofEvents(table.Name) {
						want = math.MaxInt32 // no limit, or longer than a policy can say
					}
					if got != want || ofEvents(table.Name) && days > 0 && days < 100_000 {
						t.Errorf("%s:%s, %d days: %v", table.Name, f.Name, days, got)
					}
				case bigtable.MaxAgeGCPolicy:
					age, day := time.Duration(got), 24*time.Hour
					if !ofEvents(table.Name) || days <= 0 || age%day != 0 || int(age/day) != days+1 {
						t.Errorf("%s:%s, %d days: %v", table.Name, f.Name, days, got)
					}
				default:
					t.Errorf("%s:%s, %d days: %v is of another kind", table.Name, f.Name, days, got)
				}
			})
		}
	}
}

// Terraform's rules are those of Policy: the number of versions of the rule that
// never fires, and the day more than the retention.
func TestPolicyMatchesTerraform(t *testing.T) {
	text, err := os.ReadFile("../../terraform/modules/bigtable/main.tf")
	must.Succeed(t, err)
	rules := regexp.MustCompile(`(?s)  rules = \{\n(.*?)\n  \}\n`).FindStringSubmatch(string(text))
	if rules == nil {
		t.Fatal("terraform/modules/bigtable/main.tf has no rules in the form that this test reads")
	}
	events, others := store.Family{Collect: store.ByAge}, store.Family{Collect: store.ButNewest}
	for _, want := range []string{
		fmt.Sprintf("newest = { max_version = %d }", others.Policy(90)),
		`age = { max_age = "${(var.longest_retention_days + 1) * 24}h" }`,
		fmt.Sprintf("never = { max_version = %d }", events.Policy(0)),
	} {
		if got := strings.Join(strings.Fields(rules[1]), " "); !strings.Contains(got, want) {
			t.Errorf("Terraform's rules are %s, want %s", got, want)
		}
	}
	if !strings.Contains(string(text), `{ mode = "union", rules = [local.rules[each.value.collect], { max_age = "${each.value.days * 24}h" }] }`) {
		t.Error("Terraform has another policy for families with days")
	}
	if got := time.Duration(events.Policy(90).(bigtable.MaxAgeGCPolicy)); got != (90+1)*24*time.Hour {
		t.Errorf("90 days are kept for %s", got)
	}
}

func TestInvalidTablesAreRefused(t *testing.T) {
	table := func(name, collect string) string {
		return fmt.Sprintf(`{"tables": [{"name": %q, "families": [{"name": "f", "collect": %q}]}]}`, name, collect)
	}
	if _, err := store.DecodeTables(table(store.TableEvents, "age")); err != nil {
		t.Error(err)
	}
	for name, text := range map[string]string{
		"no JSON":           "{",
		"unknown field":     strings.Replace(table("events", "age"), "collect", "gc", 1),
		"unknown policy":    table("events", "oldest"),
		"no policy":         table("events", ""),
		"profiles by age":   table(store.TableUsers, "age"),
		"other table's age": table("more", "age"),
		"days of profiles":  strings.Replace(table(store.TableUsers, "newest"), `"newest"`, `"newest", "days": 1`, 1),
		"days below zero":   strings.Replace(table(store.TableRefused, "newest"), `"newest"`, `"newest", "days": -1`, 1),
	} {
		if got, err := store.DecodeTables(text); err == nil {
			t.Errorf("%s: decoded as %+v", name, got)
		}
	}
}

// The server's own collector, under the policies as deployed, drops every event
// of 1970 and every superseded cell, and no cell of anything else that is the
// newest of its column, though it is of 1970 too: profiles are, by their tickets.
func TestPoliciesCollect(t *testing.T) {
	addr := storetest.Start(t)
	for _, days := range []int{0, 1, 365, 10_000} {
		t.Run(fmt.Sprint(days), func(t *testing.T) {
			t.Parallel()
			testPoliciesCollect(t, addr, days)
		})
	}
}

func testPoliciesCollect(t *testing.T, addr string, longestRetentionDays int) {
	client := deployed(t, addr, longestRetentionDays)
	const older, newest = bigtable.Timestamp(1000), bigtable.Timestamp(2000)
	fresh := bigtable.Now().TruncateToMilliseconds()
	for _, table := range declared(t) {
		for _, f := range table.Families {
			times := []bigtable.Timestamp{older, newest}
			if ofEvents(table.Name) || f.Days > 0 {
				times = append(times, fresh)
			}
			put(t, client, table.Name, f.Name, "shop,user,", times...)
		}
	}
	// One pass of the collector may have been under way, so the next is the first
	// that came to all cells; the third tells that it is over.
	for i := range 3 {
		key := fmt.Sprint("pass", i)
		put(t, client, store.TableUsers, "p", key, older, newest)
		await(t, func() bool { return len(cells(t, client, store.TableUsers, "p", key)) < 2 })
	}
	for _, table := range declared(t) {
		want := []bigtable.Timestamp{newest}
		switch {
		case ofEvents(table.Name) && longestRetentionDays == 0:
			want = []bigtable.Timestamp{fresh, newest, older}
		case ofEvents(table.Name):
			want = []bigtable.Timestamp{fresh}
		}
		for _, f := range table.Families {
			want := want
			if f.Days > 0 {
				want = []bigtable.Timestamp{fresh}
			}
			if diff := cmp.Diff(want, cells(t, client, table.Name, f.Name, "shop,user,")); diff != "" {
				t.Errorf("times of the cells of %s:%s (-want +got):\n%s", table.Name, f.Name, diff)
			}
		}
	}
}

// deployed makes all tables with the policies that they are deployed with, in an
// instance of its own.
func deployed(t *testing.T, addr string, longestRetentionDays int) *bigtable.Client {
	t.Helper()
	instance := fmt.Sprint("days-", longestRetentionDays)
	opts := []option.ClientOption{option.WithEndpoint(addr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials()))}
	admin, err := bigtable.NewAdminClient(t.Context(), "test", instance, opts...)
	must.Succeed(t, err)
	for _, table := range declared(t) {
		must.Succeed(t, admin.CreateTable(t.Context(), table.Name))
		for _, f := range table.Families {
			family := bigtable.Family{GCPolicy: f.Policy(longestRetentionDays)}
			must.Succeed(t, admin.CreateColumnFamilyWithConfig(t.Context(), table.Name, f.Name, family))
		}
	}
	client, err := bigtable.NewClientWithConfig(t.Context(), "test", instance, bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, opts...)
	must.Succeed(t, err)
	t.Cleanup(func() {
		if err := errors.Join(client.Close(), admin.Close()); err != nil {
			t.Error(err)
		}
	})
	return client
}

// put writes one column of a family, a cell for each time.
func put(t *testing.T, client *bigtable.Client, table, family, key string, times ...bigtable.Timestamp) {
	t.Helper()
	m := bigtable.NewMutation()
	for _, at := range times {
		m.Set(family, "column", at, []byte("value"))
	}
	must.Succeed(t, client.Open(table).Apply(t.Context(), key, m))
}

// cells are the times of a family's cells, the newest first.
func cells(t *testing.T, client *bigtable.Client, table, family, key string) []bigtable.Timestamp {
	t.Helper()
	row, err := client.Open(table).ReadRow(t.Context(), key)
	must.Succeed(t, err)
	var times []bigtable.Timestamp
	for _, item := range row[family] {
		times = append(times, item.Timestamp)
	}
	return times
}

// await asks until it is so, for a minute.
func await(t *testing.T, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !so() {
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatal("the collector never came")
		}
	}
}
