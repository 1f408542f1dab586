package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/command/local"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/score/schema"
)

func TestExitCodes(t *testing.T) {
	t.Setenv("GOOGLE_CLOUD_PROJECT", "")
	t.Setenv("FIRESTORE_EMULATOR_HOST", "")
	t.Setenv("PUBSUB_EMULATOR_HOST", "")
	t.Setenv(operator.Variable, fakeOperator)
	engine := newFakeEngine(t)
	strategy := file(t, "strategy.json", `{"eventsScoring":[],"facetsScoring":[],"personalizationImpact":10}`)
	broken := file(t, "broken.json", `{"eventsScoring":`)
	cases := []struct {
		name string
		args string // STRATEGY and BROKEN are files
		code int
		want string // on either stream
	}{
		{"help", "--help", 0, "Run, feed, read and measure"},
		{"help of a command", "import --help", 0, "Example"},
		{"nothing", "", 2, "needs a command"},
		{"unknown command", "improt", 2, `unknown command "improt" for "affinity" (did you mean import?)`},
		{"unknown flag", "profile --colour u", 2, "unknown flag: --colour"},
		{"unknown subcommand", "strategy put f", 2, `unknown command "put"`},
		{"misspelled subcommand", "app key lst", 2, `unknown command "lst" for "affinity app key" (did you mean list?)`},
		{"group alone", "strategy", 2, "needs a command"},
		{"url of no engine", "profile u --url ftp://x", 2, "must be an http or https address"},
		{"url without host", "strategy get --url http://", 2, "must be an http or https address"},
		{"empty key", "profile u --key=", 2, "must not be empty"},

		{"profile without user", "profile", 2, "USER is missing: affinity profile USER"},
		{"profile of two users", "profile a b", 2, `unexpected argument "b" after USER`},
		{"profile limit 0", "profile u --limit 0", 2, "--limit 0: must be 1 or more"},
		{"profile limit word", "profile u --limit many", 2, "invalid argument"},
		{"profile half-life 0", "profile u --half-life 0", 2, "--half-life must be an integer from 1 to 3650, got 0"},
		{"profile unknown", "profile nobody", 1, "no profile of nobody in app demo"},
		{"flags before the command", "--limit 3 profile nobody", 1, "no profile of nobody"},
		{"flags after the argument", "profile nobody --limit 3", 1, "no profile of nobody"},
		{"wrong key", "profile u --key wrong", 1, "give --app and --key"},

		{"strategy get", "strategy get", 0, `"personalizationImpact": 0`},
		{"strategy get with argument", "strategy get x", 2, "unknown command"},
		{"strategy set", "strategy set STRATEGY", 0, "the strategy is set"},
		{"strategy set without file", "strategy set", 2, "FILE is missing: affinity strategy set FILE"},
		{"strategy set missing file", "strategy set /nowhere.json", 1, "/nowhere.json"},
		{"strategy set no JSON", "strategy set BROKEN", 1, "is not a JSON object"},

		{"import without events", "import", 2, "EVENTS is missing: affinity import"},
		{"import missing file", "import /nowhere.ndjson", 1, "/nowhere.ndjson"},
		{"import both from stdin", "import --objects - -", 2, "cannot both be standard input"},
		{"import retry for nothing", "import --retry-for 0s -", 2, "--retry-for"},
		{"import retry for a word", "import --retry-for soon -", 2, "invalid argument"},

		{"load without rate", "load --for 1s", 2, "--rate is required"},
		{"load of rate 0", "load --rate 0 --for 1s", 2, "--rate 0"},
		{"load NaN", "load --rate NaN --for 1s", 2, "--rate NaN"},
		{"load without end", "load --rate 1", 2, "--for is required"},
		{"load for 0s", "load --rate 1 --for 0s", 2, "--for 0s"},
		{"load batch too large", "load --rate 1 --for 1s --batch 1001", 2, "--batch 1001"},
		{"load of no users", "load --rate 1 --for 1s --users 0", 2, "--users 0"},
		{"load ranks below 0", "load --rate 1 --for 1s --ranks -1", 2, "--ranks -1"},
		{"load of too many candidates", "load --rate 1 --for 1s --ranks 1 --candidates 5001", 2, "--candidates 5001"},
		{"load reads below 0", "load --rate 1 --for 1s --reads -1", 2, "--reads -1"},

		{"up schema", "up --schema tall", 2, `--schema: schema "tall" does not exist: there are narrow and wide`},
		{"up without schema", "up --schema=", 2, "there are narrow and wide"},
		{"up encoding", "up --encoding xml", 2, `--encoding: encoding "xml" does not exist: there are json and compact`},
		{"demo schema", "demo --schema tall", 2, "there are narrow and wide"},
		{"up retention", "up --retention-days -1", 2, "--retention-days -1"},
		{"up origin without a scheme", "up --origin shop.test:3000", 2, `--origin "shop.test:3000" must be the scheme, host and port of a web page, such as http://shop.test:3000`},
		{"up origin of a page", "up --origin http://shop.test --origin http://shop.test/cart", 2, `--origin "http://shop.test/cart" must be`},
		{"up origin null", "up --origin null", 2, `--origin "null" must be`},
		{"up origin beyond loopback", "up --addr 0.0.0.0:0 --origin http://shop.test", 2, "--origin http://shop.test: an engine at --addr 0.0.0.0:0 answers the web pages of every origin"},
		{"up now", "up --now yesterday", 2, `--now "yesterday": The timestamp has no form`},
		{"up in 1971", "up --now 1971-01-01T00:00:00Z", 2, "lies before 1980 or after 2199"},
		{"app key add in a named zone", "app key add a --acl search --valid-until 2999-01-01T00:00:00EST --project p --database d --keys-database k --instance i", 2, "write the offset alone, such as -05:00"},
		{"up app without key", "up --app shop", 2, "must be ID:KEY"},
		{"up app with empty key", "up --app shop:", 2, "key must not be empty"},
		{"up app with bad id", "up --app sh*p:k", 2, "1 to 64 letters"},
		{"up address without port", "up --addr localhost", 2, "must be host:port"},
		{"up everywhere with demokey", "up --addr 0.0.0.0:8080", 2, "the key demokey is public: give --app demo:KEY, or set AFFINITY_KEY,"},
		{"up on all addresses with demokey", "up --addr :8080 --app shop:0123456789abcdef --app x:demokey", 2, "give --app x:KEY"},
		{"up everywhere with a short key", "up --addr 0.0.0.0:8080 --app shop:s3cret", 2, "the key of app shop can be guessed"},
		{"up with url", "up --url http://127.0.0.1:1", 2, "use --addr"},
		{"up with argument", "up now", 2, "unknown command"},
		{"up without a stack", "up", 1, "has no local stack"},
		{"demo seed", "demo --seed -1", 2, "invalid argument"},

		{"app of an engine that is not local", "app list", 1, "give --project"},
		{"app create bad id", "app create a,b --project p --database d --keys-database k --instance i", 2, "1 to 64 letters"},
		{"app key add bad permission", "app key add a --acl root --project p --database d --keys-database k --instance i", 2, "does not exist: there are search"},
		{"app key add bad name", "app key add a --acl search --name a,b --project p --database d --keys-database k --instance i", 2, "want 1 to 50 letters"},
		{"app key add in the past", "app key add a --acl search --valid-until 2020-01-01T00:00:00Z --project p --database d --keys-database k --instance i", 2, "has passed"},
		{"app key add with two ends", "app key add a --acl search --valid-for 1h --valid-until 2999-01-01T00:00:00Z --project p --database d --keys-database k --instance i", 2, "give one of them"},
		{"app key remove without a key", "app key remove a --project p --database d --keys-database k --instance i", 2, "either the HASH of the key or its --name"},
		{"app key remove with two", "app key remove a 3f1c --name web --project p --database d --keys-database k --instance i", 2, "either the HASH of the key or its --name"},
		{"app key rotate backwards", "app key rotate a web --overlap -1h --project p --database d --keys-database k --instance i", 2, "must not be negative"},
		{"app create bad retention", "app create a --retention-days -3 --project p --database d --keys-database k --instance i", 2, "retention of -3 days"},
		{"app create bad schema", "app create a --schema tall --project p --database d --keys-database k --instance i", 2, "there are narrow and wide"},
		{"app create bad encoding", "app create a --encoding xml --project p --database d --keys-database k --instance i", 2, "there are json and compact"},
		{"app encoding without encoding", "app encoding a --project p --database d --keys-database k --instance i", 2, "ENCODING is missing: affinity app encoding ID ENCODING"},
		{"app encoding bad encoding", "app encoding a xml --project p --database d --keys-database k --instance i", 2, "there are json and compact"},
		{"app encoding of no app", "app encoding a json --project p --database d --keys-database k --instance i", 1, "there is no such app"},
		{"app key add without permissions", "app key add a --project p --database d --keys-database k --instance i", 2, "--acl must name"},
		{"app key add to no app", "app key add a --acl search --project p --database d --keys-database k --instance i", 1, "there is no such app"},
		{"app retention of no app", "app retention a 30 --project p --database d --keys-database k --instance i", 1, "there is no such app"},
		{"app ranking of no app", "app ranking a --browser on --project p --database d --keys-database k --instance i", 1, "there is no such app"},
		{"app ranking empty", "app ranking a --browser= --project p --database d --keys-database k --instance i", 2, "must be on or off"},
		{"app segments of no app", "app segments a on --project p --database d --keys-database k --instance i", 1, "there is no such app"},
		{"app segments maybe", "app segments a maybe --project p --database d --keys-database k --instance i", 2, `"maybe": must be on or off`},
		{"app segments of all", "app segments --project p --database d --keys-database k --instance i", 2, "ID is missing: affinity app segments ID [on|off]"},
		{"app segments twice", "app segments a on off --project p --database d --keys-database k --instance i", 2, "unexpected argument"},
		{"app retention word", "app retention a long --project p --database d --keys-database k --instance i", 2, "not a whole number"},
		{"app key alone", "app key", 2, "needs a command"},

		{"replay of an engine that is not local", "replay", 1, "give --project"},
		{"replay topic", "replay --topic=", 2, "must not be empty"},
		{"replay with argument", "replay x", 2, "unknown command"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			line := strings.NewReplacer("STRATEGY", strategy, "BROKEN", broken).Replace(c.args)
			args := strings.Fields(line)
			if !strings.Contains(line, "--url") && !strings.HasPrefix(line, "up") && !strings.HasPrefix(line, "demo") && line != "" {
				args = append(args, "--url", engine.URL)
			}
			affinity(t, "", args...).wants(t, c.code, c.want)
		})
	}
}

// Without a project, a token or an address the commands do not know which engine
// is meant.
func TestAppOfWhichEngine(t *testing.T) {
	for _, name := range []string{"GOOGLE_CLOUD_PROJECT", "FIRESTORE_EMULATOR_HOST", operator.Variable} {
		t.Setenv(name, "")
	}
	affinity(t, "", "app", "list").wants(t, cli.ExitUsage, "for a deployed engine give --project", "set AFFINITY_OPERATOR")
}

func TestWrongUsageNamesHelp(t *testing.T) {
	t.Parallel()
	r := affinity(t, "", "app", "key", "remove", "x")
	r.wants(t, cli.ExitUsage, "Run 'affinity app key remove --help' for its usage.")
	if r.out != "" {
		t.Errorf("wrong usage wrote to stdout: %q", r.out)
	}
}

func TestNoEngine(t *testing.T) {
	t.Parallel()
	engine := newFakeEngine(t)
	engine.Close()
	for _, args := range [][]string{{"profile", "u"}, {"strategy", "get"}, {"load", "--rate", "1", "--for", "1s"}, {"import", "-"}} {
		affinity(t, `{"eventType":"view","userToken":"u","eventName":"n"}`, append(args, "--url", engine.URL)...).
			wants(t, cli.ExitFailed, "no engine answers at "+engine.URL, "go run ./scripts/affinity up")
	}
}

func TestNoLocalStackToAsk(t *testing.T) {
	t.Setenv("PUBSUB_EMULATOR_HOST", "")
	t.Setenv(operator.Variable, fakeOperator)
	engine := newFakeEngine(t)
	engine.Close()
	affinity(t, "", "replay", "--url", engine.URL).wants(t, cli.ExitFailed, "no engine answers at "+engine.URL)
}

// runningEngine is a fake engine as a local stack.
type runningEngine struct {
	*fakeEngine
	closed *bool
}

func (r runningEngine) URL() string { return r.fakeEngine.URL }

func (r runningEngine) ConsoleLink(app, _ string) string {
	return r.URL() + "/console/open?code=" + app
}

func (r runningEngine) Idle(context.Context) error { return nil }

func (r runningEngine) Close() error {
	*r.closed = true
	return nil
}

// untilReady ends a context once the ready line is printed.
type untilReady struct {
	text bytes.Buffer
	stop context.CancelFunc
}

func (u *untilReady) Write(p []byte) (int, error) {
	u.text.Write(p)
	if strings.HasPrefix(u.text.String(), "ready ") {
		u.stop()
	}
	return len(p), nil
}

func TestUp(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &untilReady{stop: stop}
	var given local.Options
	closed := false
	engine := newFakeEngine(t)
	r := affinityWith(t, ctx, "", func(tl *program) {
		tl.Out = out
		tl.start = func(_ context.Context, o local.Options) (local.RunningStack, error) {
			given = o
			return runningEngine{engine, &closed}, nil
		}
	}, "up", "--addr", "0.0.0.0:0", "--app", "shop:key:with:colons:s3cret", "--app=b_-2:0123456789abcdef", "--now", "2019-05-28T00:00:00Z", "--retention-days", "0")
	r.wants(t, cli.ExitOK)
	if got, want := out.text.String(), "ready "+engine.URL+"\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	if !closed {
		t.Error("the stack was not closed")
	}
	want := []local.App{{ID: "shop", Key: "key:with:colons:s3cret"}, {ID: "b_-2", Key: "0123456789abcdef"}}
	if len(given.Apps) != 2 || given.Apps[0] != want[0] || given.Apps[1] != want[1] {
		t.Errorf("apps %v, want %v", given.Apps, want)
	}
	if !given.Layout.Equal(schema.Of(schema.Wide)) {
		t.Errorf("layout %+v, want the wide one", given.Layout)
	}
	if given.Addr != "0.0.0.0:0" || given.RetentionDays != 0 || given.Now.Format("2006-01-02") != "2019-05-28" || given.Log == nil {
		t.Errorf("started with %+v", given)
	}
}

// A key from the environment is not in the list of processes. The flag takes
// precedence.
func TestKeyFromTheEnvironment(t *testing.T) {
	engine := newFakeEngine(t)
	t.Setenv(command.KeyVariable, "wrong")
	affinity(t, "", "strategy", "get", "--url", engine.URL).wants(t, cli.ExitFailed, "give --app and --key")
	affinity(t, "", "strategy", "get", "--url", engine.URL, "--key", "demokey").wants(t, cli.ExitOK)
	t.Setenv(command.KeyVariable, "demokey")
	r := affinity(t, "", "strategy", "get", "--url", engine.URL)
	r.wants(t, cli.ExitOK)
	if strings.Contains(r.err, "unencrypted") {
		t.Errorf("a warning about this machine: %s", r.err)
	}
}

func TestKeyWithoutTLS(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	affinityWith(t, ctx, "", func(*program) {}, "strategy", "get", "--url", "http://192.0.2.1:9").
		wants(t, cli.ExitFailed, "warning: http sends the key to 192.0.2.1:9 unencrypted: use https")
}

// Origins are given as browsers send them.
func TestUpOrigins(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var given local.Options
	closed := false
	engine := newFakeEngine(t)
	affinityWith(t, ctx, "", func(tl *program) {
		tl.Out = &untilReady{stop: stop}
		tl.start = func(_ context.Context, o local.Options) (local.RunningStack, error) {
			given = o
			return runningEngine{engine, &closed}, nil
		}
	}, "up", "--origin", "HTTP://Shop.test:3000/", "--origin", "http://b.test:80", "--origin", "https://b.test:443", "--origin", "http://b.test:443", "--origin", "http://[2001:db8::1]:80").wants(t, cli.ExitOK)
	want := []string{"http://shop.test:3000", "http://b.test", "https://b.test", "http://b.test:443", "http://[2001:db8::1]"}
	if !slices.Equal(given.Origins, want) {
		t.Errorf("started with the origins %q, want %q", given.Origins, want)
	}
}

// up takes the operator's token from the environment, or makes one and prints it.
func TestUpOperator(t *testing.T) {
	up := func() (local.Options, ran) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var given local.Options
		closed := false
		engine := newFakeEngine(t)
		r := affinityWith(t, ctx, "", func(tl *program) {
			tl.Out = &untilReady{stop: stop}
			tl.start = func(_ context.Context, o local.Options) (local.RunningStack, error) {
				given = o
				return runningEngine{engine, &closed}, nil
			}
		}, "up")
		return given, r
	}
	t.Setenv(operator.Variable, "")
	o, r := up()
	r.wants(t, cli.ExitOK, "export AFFINITY_OPERATOR="+o.Operator+"\n")
	if err := operator.CheckToken(o.Operator); err != nil {
		t.Errorf("started with the token %q: %v", o.Operator, err)
	}
	t.Setenv(operator.Variable, fakeOperator)
	if o, r = up(); o.Operator != fakeOperator || r.code != cli.ExitOK || strings.Contains(r.err, fakeOperator) {
		t.Errorf("started with the token %q and printed %q, want %q and nothing", o.Operator, r.err, fakeOperator)
	}
	t.Setenv(operator.Variable, "guess")
	affinity(t, "", "up").wants(t, cli.ExitUsage, "AFFINITY_OPERATOR must be 16 to 200 letters")
}

// The default encoding depends on the schema.
func TestUpLayout(t *testing.T) {
	t.Parallel()
	one := func(n schema.Name, e schema.Encoding) schema.Layout {
		return schema.Layout{Write: []schema.Name{n}, Read: n, Encoding: e}
	}
	for line, want := range map[string]schema.Layout{
		"up":                                    one(schema.Wide, schema.Compact),
		"up --schema wide":                      one(schema.Wide, schema.Compact),
		"up --schema narrow":                    one(schema.Narrow, schema.JSON),
		"up --encoding json":                    one(schema.Wide, schema.JSON),
		"up --schema narrow --encoding compact": one(schema.Narrow, schema.Compact),
		"demo --schema narrow":                  one(schema.Narrow, schema.JSON),
	} {
		var given local.Options
		affinityWith(t, t.Context(), "", func(tl *program) {
			tl.start = func(_ context.Context, o local.Options) (local.RunningStack, error) {
				given = o
				return nil, errors.New("enough")
			}
		}, strings.Fields(line)...).wants(t, cli.ExitFailed, "enough")
		if !given.Layout.Equal(want) {
			t.Errorf("%s: started with %+v, want %+v", line, given.Layout, want)
		}
	}
}

func TestUpThatCannotStart(t *testing.T) {
	t.Parallel()
	affinityWith(t, t.Context(), "", func(tl *program) {
		tl.start = func(context.Context, local.Options) (local.RunningStack, error) {
			return nil, errors.New("address already in use")
		}
	}, "up").wants(t, cli.ExitFailed, "address already in use")
}

// The syntax of up --app is refused elsewhere, with the right flags in the error.
func TestAppFlagWithKeyIsRefused(t *testing.T) {
	affinity(t, "", "profile", "u", "--app", "demo:demokey").wants(t, cli.ExitUsage, "--app demo --key KEY")
}
