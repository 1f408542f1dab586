package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command/admin"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/local/seal"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/queue/taskqueue"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// onDeployed runs commands on apps of a deployed engine, in a program that change has changed.
func onDeployed(t *testing.T, store *config.Store, change func(*program)) func(line string) ran {
	return func(line string) ran {
		t.Helper()
		return affinityWith(t, t.Context(), "", func(tl *program) {
			tl.open.Config = func(context.Context, admin.Databases) (admin.ConfigStore, error) {
				return admin.ConfigStore{Store: store, Close: func() error { return nil }}, nil
			}
			change(tl)
		}, strings.Fields("app --project p --database affinity --keys-database affinity-keys --instance affinity "+line)...)
	}
}

// onDeployedJobs is onDeployed with jobs, whose tasks are kept.
func onDeployedJobs(t *testing.T, store *config.Store, jobs documents.Store, created *tasks) func(line string) ran {
	return onDeployed(t, store, func(tl *program) {
		tl.open.Config = func(context.Context, admin.Databases) (admin.ConfigStore, error) {
			return admin.ConfigStore{Store: store, Documents: jobs, Close: func() error { return nil }}, nil
		}
		tl.open.Tasks = func(ctx context.Context, c taskqueue.Config) (queue.Queue, func() error, error) {
			if c.Queue == "" {
				return admin.Deployed().Tasks(ctx, c)
			}
			return created, func() error { return nil }, nil
		}
	})
}

// onLocal runs commands on apps of an engine of this machine, as its operator.
func onLocal(t *testing.T, s *stack.Stack) func(line string) ran {
	t.Setenv(operator.Variable, s.Operator)
	return func(line string) ran { return affinity(t, "", strings.Fields("app --url "+s.URL+" "+line)...) }
}

func TestAppCommands(t *testing.T) {
	t.Parallel()
	store, log := config.NewMemory(), &memoryLog{}
	var opened admin.Databases
	var instance string
	app := onDeployed(t, store, func(tl *program) {
		open := tl.open.Config
		tl.open.Config = func(ctx context.Context, d admin.Databases) (admin.ConfigStore, error) {
			opened = d
			return open(ctx, d)
		}
		tl.open.Log = func(_ context.Context, cfg admin.Bigtables) (admin.ChangeLog, error) {
			instance = cfg.Project + "/" + cfg.Instance
			return log, nil
		}
	})

	app("list").wants(t, cli.ExitOK, "there are no apps")
	if instance != "" {
		t.Error("a list opens the audit log")
	}
	made := app("create shop --retention-days 30")
	made.wants(t, cli.ExitOK, "events count for 30 days; wide, compact", "they are printed only once")
	if opened != (admin.Databases{Project: "p", Configuration: "affinity", Keys: "affinity-keys"}) {
		t.Errorf("opened %+v", opened)
	}
	holdsFirst(t, store, made)
	app("create shop").wants(t, cli.ExitFailed, "app shop exists")
	app("list --database other --keys-database others").wants(t, cli.ExitOK, "shop  events count for 30 days  wide, compact  strategy version 0")
	if opened != (admin.Databases{Project: "p", Configuration: "other", Keys: "others"}) {
		t.Errorf("with other databases opened %+v", opened)
	}

	app("retention shop 0").wants(t, cli.ExitOK, "app shop: events count forever")
	app("list").wants(t, cli.ExitOK, "shop  events count forever")

	app("limits shop").wants(t, cli.ExitOK, "events per second                            5000  default", "beyond: the slow lane", "audits at a time                                1  fixed")
	app("limits shop --events-per-second 300 --jobs-per-hour 7").wants(t, cli.ExitOK, "events per second                             300           beyond")
	app("limits shop --jobs-per-hour 0").wants(t, cli.ExitOK, " 300  ", "jobs started per hour                         100  default")
	app("limits shop").wants(t, cli.ExitOK, "write window                         none: each message writes profiles")
	app("limits shop --write-window 2s").wants(t, cli.ExitOK, "write window                         2s", " 300  ")
	app("limits shop --write-window 0").wants(t, cli.ExitOK, "write window                         none")
	app("limits shop --write-window 61s").wants(t, cli.ExitUsage, "write window of 1m1s: want 0s to 1m0s")
	app("limits shop --write-window -1s").wants(t, cli.ExitUsage, "write window of -1s: want 0s to 1m0s")
	app("limits shop --write-window 2").wants(t, cli.ExitUsage, "write-window")
	app("limits shop --jobs-per-hour -1").wants(t, cli.ExitUsage, "jobsPerHour of -1")
	app("limits nowhere --jobs-per-hour 1").wants(t, cli.ExitFailed, "there is no such app")

	added := app("key add shop --acl search,recommendation")
	holds(t, store, added, auth.Search, auth.Recommendation)
	hash := auth.Hash(strings.TrimSpace(added.out))
	app("key list shop").wants(t, cli.ExitOK, hash+"  search,recommendation", "search  "+auth.Hash(firstKeys(made)["search"]),
		"the last uses of the keys cannot be read: no Bigtable here")
	app("key remove shop "+hash).wants(t, cli.ExitOK, "stops working within 5 seconds")
	app("key remove shop "+hash).wants(t, cli.ExitFailed, "has no key with the hash")
	app("key remove shop --name admin").wants(t, cli.ExitOK, "stops working within 5 seconds")
	app("key remove shop --name admin").wants(t, cli.ExitFailed, "has no key admin")
	want := []string{
		"shop operator app.create ", "shop operator key.add search", "shop operator key.add admin", "shop operator app.retention ",
		"shop operator app.limits ", "shop operator app.limits ", "shop operator app.limits ", "shop operator app.limits ",
		"shop operator key.add " + hash[:12], "shop operator key.remove " + hash[:12],
		"shop operator key.remove admin",
	}
	if diff := cmp.Diff(want, log.changes); diff != "" || instance != "p/affinity" {
		t.Errorf("recorded in %s (-want +got):\n%s", instance, diff)
	}
	if listed := app("key list shop"); strings.Contains(listed.out, hash) {
		t.Errorf("the removed key is still listed:\n%s", listed.out)
	}
}

func TestKeyAttributes(t *testing.T) {
	t.Parallel()
	store, sealer := config.NewMemory(), seal.New()
	app := onDeployed(t, store, func(tl *program) {
		tl.open.Cipher = func(ctx context.Context, kmsKey string) (config.Cipher, error) {
			if kmsKey == "" {
				return admin.Deployed().Cipher(ctx, kmsKey)
			}
			return sealer, nil
		}
	})
	keys := func(name string) (found []config.Key) {
		t.Helper()
		all, err := store.Keys(t.Context(), "shop")
		must(t, err)
		found = slices.DeleteFunc(all, func(k config.Key) bool { return k.Name != name })
		slices.SortStableFunc(found, func(a, b config.Key) int { return b.CreatedAt.Compare(a.CreatedAt) })
		return found
	}
	app("create shop")
	added := app("key add shop --name web --acl search --indexes products,news_* --referers https://*.shop.example/* --per-address 60 --valid-for 720h --description pages")
	holds(t, store, added, auth.Search)
	app("key list shop").wants(t, cli.ExitOK, "web  "+auth.Hash(strings.TrimSpace(added.out))+"  search  created 20", "  ends 20",
		"  indexes products,news_*  referers https://*.shop.example/*  60 requests a minute from an address  \"pages\"\n")
	app("key add shop --name web --acl search").wants(t, cli.ExitFailed, "affinity app key rotate shop web")
	for _, acl := range []string{"admin", "search,usage", "usage,search"} {
		app("key add shop --hash-tokens --acl "+acl).wants(t, cli.ExitUsage, "--hash-tokens: such a key is for calls of SDKs alone")
	}
	app("key add shop --name segment --acl search --hash-tokens").wants(t, cli.ExitOK)
	app("key list shop").wants(t, cli.ExitOK, "  hashes tokens\n")
	app("key rotate shop segment").wants(t, cli.ExitOK)
	if got := keys("segment"); len(got) != 2 || !got[0].HashTokens {
		t.Errorf("keys %+v, want that the new one hashes tokens as the old one does", got)
	}

	rotated := app("key rotate shop web --overlap 1h")
	holds(t, store, rotated, auth.Search)
	rotated.wants(t, cli.ExitOK, "it is printed only once", "the old key "+auth.Hash(strings.TrimSpace(added.out))+" ends at 20")
	got := keys("web")
	if len(got) != 2 {
		t.Fatalf("keys %+v, want the new and the old one", got)
	}
	if life := got[0].ValidUntil.Sub(got[0].CreatedAt); life != 720*time.Hour {
		t.Errorf("the new key is valid for %v, want as long as the old one was", life)
	}
	if left := got[1].ValidUntil.Sub(got[0].CreatedAt); left != time.Hour {
		t.Errorf("the old key stays valid for %v, want the overlap", left)
	}
	old := got[1]
	got[0].Hash, got[0].CreatedAt, got[0].ValidUntil = old.Hash, old.CreatedAt, old.ValidUntil
	if diff := cmp.Diff(old, got[0]); diff != "" {
		t.Errorf("the new key differs (-old +new):\n%s", diff)
	}
	app("key remove shop --name web").wants(t, cli.ExitFailed, "has 2 keys web, remove one by its hash", old.Hash)
	app("key rotate shop web --overlap 0s").wants(t, cli.ExitOK)
	if got := keys("web"); len(got) != 3 || got[1].ValidUntil.After(time.Now()) || got[2].ValidUntil.After(time.Now()) {
		t.Errorf("keys %+v, want one that is valid", got)
	}
	app("key add shop --acl search --parent").wants(t, cli.ExitUsage, "--kms-key is required")
	app("key add shop --acl search,admin --parent").wants(t, cli.ExitUsage, "cannot have the permission admin")
	parent := app("key add shop --name server --acl search --parent --kms-key k")
	holds(t, store, parent, auth.Search)
	parent.wants(t, cli.ExitOK, "never put it into a web page")
	app("key list shop").wants(t, cli.ExitOK, "  search  created 20", "  parent\n")
	app("key rotate shop server --kms-key k").wants(t, cli.ExitOK, "never put it into a web page")
	for _, k := range keys("server") {
		if len(k.Parent) == 0 || k.Hash == auth.Hash(strings.TrimSpace(parent.out)) && k.ValidUntil.IsZero() {
			t.Errorf("rotated parent %+v, want two parents, one with an end", k)
		}
	}
	for range config.MaxParents - 2 {
		app("key add shop --acl search --parent --kms-key k").wants(t, cli.ExitOK)
	}
	app("key add shop --acl search --parent --kms-key k").wants(t, cli.ExitFailed, "5 parents, as many as it may")
	app("key rotate shop app").wants(t, cli.ExitFailed, "has no valid key app")
	app("key rotate shop admin").wants(t, cli.ExitOK)
	if got := keys("admin"); len(got) != 2 || !got[0].ValidUntil.IsZero() || got[1].ValidUntil.Before(time.Now().Add(23*time.Hour)) {
		t.Errorf("keys %+v, want one without an end and one that ends tomorrow", got)
	}
}

// The keys of a new app work once they are printed, also if the engine was asked for the app
// before it existed.
func TestNewKeysWorkOncePrinted(t *testing.T) {
	s := startEngine(t, stack.Options{})
	app := onLocal(t, s)
	works := func(id, key string, want int) {
		t.Helper()
		r := affinity(t, "", "strategy", "get", "--url", s.URL, "--app", id, "--key", key)
		if r.code != want {
			t.Errorf("key of app %s: exit %d, want %d: %s", id, r.code, want, r.err)
		}
	}
	works("shop", "guess", cli.ExitFailed)
	made := app("create shop")
	made.wants(t, cli.ExitOK)
	works("shop", firstKeys(made)["admin"], cli.ExitOK)
	added := app("key add shop --acl recommendation --parent")
	added.wants(t, cli.ExitOK)
	works("shop", strings.TrimSpace(added.out), cli.ExitOK)
	if said := made.err + added.err; strings.Contains(said, "not verified") {
		t.Error(said)
	}
}

// keyless is an engine that refuses keys some times, and then forbids what they ask for.
func keyless(t *testing.T, refusals int) (url string, asked *int) {
	t.Helper()
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n++; n <= refusals {
			http.Error(w, `{"status":401,"message":"Invalid credentials"}`, http.StatusUnauthorized)
			return
		}
		http.Error(w, `{"status":403,"message":"Method not allowed"}`, http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	return server.URL, &n
}

// Keys of a deployed engine are tried at --url, and what that says does not hold them back.
func TestKeysOfADeployedEngineAreTried(t *testing.T) {
	for name, c := range map[string]struct {
		refusals, least int
		says            string
	}{
		"known at once":      {0, 2, ""},
		"refused at first":   {1, 3, ""},
		"refused for ever":   {1 << 30, 3, "not verified: the engine refuses a key"},
		"no engine is named": {-1, 0, "not verified: --url names no engine"},
	} {
		t.Run(name, func(t *testing.T) {
			url, asked := keyless(t, c.refusals)
			app, line := onDeployed(t, config.NewMemory(), func(tl *program) { tl.ConfigTTL = 200 * time.Millisecond }), "create shop"
			if c.refusals >= 0 {
				line += " --url " + url
			}
			made := app(line)
			made.wants(t, cli.ExitOK, "they are printed only once")
			if *asked < c.least || c.least == 0 && *asked > 0 || !strings.Contains(made.err, c.says) ||
				c.says == "" && strings.Contains(made.err, "not verified") || len(firstKeys(made)) != 2 {
				t.Errorf("asked %d times; out %q, err %q", *asked, made.out, made.err)
			}
		})
	}
}

// With the operator's token the commands work on an engine of this machine.
func TestAppCommandsOnALocalEngine(t *testing.T) {
	s := startEngine(t, stack.Options{RetentionDays: 90})
	t.Setenv("GOOGLE_CLOUD_PROJECT", "a-deployed-one") // the token decides
	app := onLocal(t, s)
	opens := func(key string) bool {
		r := affinity(t, "", "strategy", "get", "--url", s.URL, "--app", "shop", "--key", key)
		return r.code == cli.ExitOK
	}
	made := app("create shop --retention-days 30 --schema narrow")
	made.wants(t, cli.ExitOK, "on the local engine at "+s.URL, "app shop created (events count for 30 days; narrow, json)")
	holdsFirst(t, s.Backends.Config, made)
	if !opens(firstKeys(made)["admin"]) || opens(firstKeys(made)["search"]) {
		t.Error("the engine does not accept the new app's admin key, or lets its search key read the strategy")
	}
	app("create shop").wants(t, cli.ExitFailed, "app shop exists")
	app("retention shop 0").wants(t, cli.ExitOK, "app shop: events count forever")
	app("consistency shop strong").wants(t, cli.ExitOK, "app shop: reads are strong")
	app("consistency shop stale").wants(t, cli.ExitUsage, `consistency must be eventual or strong, got "stale"`)
	app("consistency nowhere strong").wants(t, cli.ExitFailed, "there is no such app")
	app("retention nowhere 1").wants(t, cli.ExitFailed, "there is no such app")
	app("ranking shop").wants(t, cli.ExitOK, "app shop: browser ranking is off")
	app("ranking shop --browser on").wants(t, cli.ExitOK, "which of two objects the user prefers", "app shop: browser ranking is on")
	app("ranking shop --browser off").wants(t, cli.ExitOK, "app shop: browser ranking is off")
	app("ranking shop --browser yes").wants(t, cli.ExitUsage, `--browser "yes": must be on or off`)
	app("ranking nowhere").wants(t, cli.ExitFailed, "there is no such app")
	app("segments shop").wants(t, cli.ExitOK, "app shop: segments are off; turn them on with: affinity app segments shop on")
	app("segments shop on").wants(t, cli.ExitOK, "app shop: segments are on since 20")
	app("segments shop").wants(t, cli.ExitOK, "app shop: segments are on since 20")
	app("segments shop off").wants(t, cli.ExitOK, "app shop: segments are off")
	app("segments nowhere").wants(t, cli.ExitFailed, "there is no such app")
	app("limits shop --reads-per-second 9").wants(t, cli.ExitOK, "reads and other requests per second             9")
	app("limits nowhere").wants(t, cli.ExitFailed, "there is no such app")
	app("encoding shop compact").wants(t, cli.ExitOK, "app shop: narrow, compact")
	app("list").wants(t, cli.ExitOK, "demo  ", "shop  events count forever  narrow, compact  strategy version 0  created 20")
	for _, user := range []string{"undefined", "ann", "undefined"} {
		affinity(t, "", "events", "send", user, "--filter", "color:Red", "--url", s.URL).wants(t, cli.ExitOK)
	}
	must(t, s.Backends.Usage.Flush(t.Context()))
	app("top").wants(t, cli.ExitOK, "undefined (at least 2 events) names nobody: see affinity events seen --app demo\n")
	testMoney(t, s, app)
	added := app("key add shop --acl search")
	holds(t, s.Backends.Config, added, auth.Search)
	hash := auth.Hash(strings.TrimSpace(added.out))
	must(t, s.Backends.Usage.Flush(t.Context()))
	app("key list shop").wants(t, cli.ExitOK, hash+"  search  created 20", "Z  not used",
		auth.Hash(firstKeys(made)["admin"])+"  "+strings.Join(auth.All, ",")+"  created 20", "Z  used "+usage.DayOf(time.Now()).String())
	app("key remove shop "+hash).wants(t, cli.ExitOK, "stops working within 5 seconds")
	app("key remove shop "+hash).wants(t, cli.ExitFailed, "has no key with the hash")
	app("key add nowhere --acl search").wants(t, cli.ExitFailed, "there is no such app")

	auditLog := func(args ...string) ran {
		t.Helper()
		return affinity(t, "", append([]string{"audit-log", "--url", s.URL, "--app", "shop", "--key", firstKeys(made)["admin"]}, args...)...)
	}
	auditLog().wants(t, cli.ExitOK, "operator  key.remove       "+hash[:12], "operator  app.create       -", "retention 30 days", "operator  app.consistency", "operator  app.ranking", "browser on", "done")
	auditLog("--action", "app.encoding", "--json").wants(t, cli.ExitOK, `"action": "app.encoding"`, `"detail": "encoding compact"`)
	auditLog("--limit", "2").wants(t, cli.ExitOK, "there may be more: --cursor 8")
	auditLog("--action", "nothing").wants(t, cli.ExitUsage, "there are strategy.set, ")
	auditLog("--limit", "0").wants(t, cli.ExitUsage, "--limit must be at least 1")
	auditLog("--cursor", "x").wants(t, cli.ExitFailed, "cursor must be the cursor of another answer")
	auditLog("--user", "ann").wants(t, cli.ExitOK, "TIME  ACTOR")

	if r := affinity(t, "", "__complete", "app", "retention", "--url", s.URL, ""); !strings.Contains(r.out, "shop\n") || !strings.HasSuffix(r.out, ":4\n") {
		t.Errorf("app retention completes %q, want shop among the apps", r.out)
	}
	t.Setenv(operator.Variable, "another-engines-token")
	app("list").wants(t, cli.ExitFailed, "has another operator's token", "set AFFINITY_OPERATOR")
	t.Setenv(operator.Variable, "")
	app("list").wants(t, cli.ExitUsage, "set AFFINITY_OPERATOR", "for a deployed engine give --project")
}

func TestAppLayouts(t *testing.T) {
	t.Parallel()
	store := config.NewMemory()
	app := onDeployed(t, store, func(*program) {})
	app("create legible --schema narrow").wants(t, cli.ExitOK, "app legible created (events count for 90 days; narrow, json)")
	app("create small --schema narrow --encoding compact").wants(t, cli.ExitOK, "narrow, compact")
	app("encoding small json").wants(t, cli.ExitOK, "app small: narrow, json\n")

	move := config.Migration{ID: "migration-1", From: schema.Narrow, To: schema.Wide, Phase: config.Dual, StartedAt: time.Unix(1, 0).UTC()}
	if _, err := store.UpdateLog(t.Context(), "small", func(a *config.App) error {
		a.Log.Write, a.Migration = []schema.Name{schema.Wide, schema.Narrow}, move
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	app("encoding small compact").wants(t, cli.ExitOK, "app small: narrow (writes narrow and wide), compact\n")
	app("list").wants(t, cli.ExitOK, "legible  events count for 90 days  narrow, json  ", "small  events count for 90 days  narrow (writes narrow and wide), compact  ")
	if got, err := store.App(t.Context(), "small"); err != nil || got.Migration != move {
		t.Errorf("a new encoding changed the migration to %+v (%v), want %+v", got.Migration, err, move)
	}
}

// firstKeys returns the keys of a new app by their names.
func firstKeys(r ran) map[string]string {
	keys := map[string]string{}
	for line := range strings.Lines(r.out) {
		if fields := strings.Fields(line); len(fields) == 2 {
			keys[fields[0]] = fields[1]
		}
	}
	return keys
}

// holdsFirst checks that a command printed the two keys of a new app and nothing
// else, and that the store has their hashes.
func holdsFirst(t *testing.T, store *config.Store, r ran) {
	t.Helper()
	if !regexp.MustCompile(`^search [A-Za-z0-9]{32,}\nadmin  [A-Za-z0-9]{32,}\n$`).MatchString(r.out) {
		t.Errorf("stdout is %q, want two keys", r.out)
	}
	for name, acl := range map[string][]string{"search": {auth.Search}, "admin": auth.All} {
		key, err := store.Key(t.Context(), "shop", auth.Hash(firstKeys(r)[name]))
		if err != nil || key.Name != name || strings.Join(key.ACL, ",") != strings.Join(acl, ",") {
			t.Errorf("the store holds %+v for the key %s (%v), want the permissions %v", key, name, err, acl)
		}
	}
}

// holds checks that a command printed one key to stdout and nothing else, and that
// the store has its hash with these permissions.
func holds(t *testing.T, store *config.Store, r ran, acl ...string) {
	t.Helper()
	if !regexp.MustCompile(`^[A-Za-z0-9]{32,}\n$`).MatchString(r.out) {
		t.Errorf("stdout is %q, want one key", r.out)
	}
	key, err := store.Key(t.Context(), "shop", auth.Hash(strings.TrimSpace(r.out)))
	if err != nil || strings.Join(key.ACL, ",") != strings.Join(acl, ",") {
		t.Errorf("the store holds %v for the key (%v), want the permissions %v", key.ACL, err, acl)
	}
}
