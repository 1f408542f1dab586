package main

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command/local"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/local/ports"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// An operator makes an app with the token of the folder, its key opens the engine, SIGTERM ends it, and
// the app is there after another start.
func TestServe(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	addr, err := ports.Free()
	must(t, err)
	admin, err := ports.Free()
	must(t, err)
	environment := append(os.Environ(), asTool+"=1", operator.Variable+"=", "BIGTABLE_EMULATOR_HOST=", "PUBSUB_EMULATOR_HOST=",
		"FIRESTORE_EMULATOR_HOST=")
	var log bytes.Buffer
	start := func() *process {
		return startTool(t, environment, &log, unitCommand(t, data, "--addr", addr, "--admin", admin)...)
	}
	engine := start()
	token, err := os.ReadFile(filepath.Join(data, stack.OperatorFile))
	must(t, err)
	t.Setenv(operator.Variable, strings.TrimSpace(string(token)))
	operators := "http://" + admin
	affinity(t, "", "app", "list", "--url", operators).wants(t, cli.ExitOK, "there are no apps")
	created := affinity(t, "", "app", "create", "shop", "--url", operators)
	created.wants(t, cli.ExitOK, "app shop created")
	if strings.Contains(created.err, "not verified") {
		t.Error(created.err)
	}
	_, key, _ := strings.Cut(created.out, "admin")
	key = strings.TrimSpace(key)
	opens := func() {
		t.Helper()
		for _, url := range []string{engine.url, operators} {
			affinity(t, "", "usage", "--url", url, "--app", "shop", "--key", key).wants(t, cli.ExitOK)
			affinity(t, "", "usage", "--url", url, "--app", "demo", "--key", stack.DemoKey).wants(t, cli.ExitFailed)
		}
		affinity(t, "", "healthy", "--url", engine.url).wants(t, cli.ExitOK)
		affinity(t, "", "app", "list", "--url", engine.url).wants(t, cli.ExitFailed)
	}
	opens()
	must(t, engine.cmd.Process.Signal(syscall.SIGTERM))
	must(t, engine.cmd.Wait())
	engine = start()
	opens()
	must(t, cli.Poll(t.Context(), time.Minute, func() (bool, error) { // the first one begins beside the requests
		return affinity(t, "", "backup", "verify", "--from", data+"-backups").code == cli.ExitOK, nil
	}))
	must(t, engine.cmd.Process.Signal(syscall.SIGTERM))
	must(t, engine.cmd.Wait())
	for line := range strings.Lines(log.String()) {
		var entry struct{ Level, Msg string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Level == "" || entry.Msg == "" {
			t.Errorf("no line of a JSON log: %q", line)
		}
		if strings.Contains(line, strings.TrimSpace(string(token))) {
			t.Errorf("the log shows the operator's token: %s", line)
		}
	}
}

// unitCommand returns what the unit of systemd starts, with another data folder and these flags.
func unitCommand(t *testing.T, data string, flags ...string) (args []string) {
	t.Helper()
	unit, err := os.ReadFile("../release/affinity.service")
	must(t, err)
	_, command, _ := strings.Cut(string(unit), "\nExecStart=/usr/bin/affinity ")
	command, _, _ = strings.Cut(command, "\n")
	for _, arg := range strings.Fields(command) {
		if arg == "$AFFINITY_FLAGS" {
			args = append(args, flags...)
		} else {
			args = append(args, strings.Replace(arg, "/var/lib/affinity", data, 1))
		}
	}
	return args
}

// The machine that Terraform makes starts the engine with flags that it has.
func TestServeOnMachine(t *testing.T) {
	text, err := os.ReadFile("../../terraform/single/cloud-init.yaml.tftpl")
	must(t, err)
	tests, err := os.ReadFile("../../terraform/single/tests/single.tftest.hcl")
	must(t, err)
	flags := regexp.MustCompile(`AFFINITY_FLAGS=\\"([^"\\]*)\\"`).FindSubmatch(tests)
	if flags == nil || !bytes.Contains(text, []byte(`AFFINITY_FLAGS="${`)) {
		t.Fatal("the configuration starts the engine in a form that this test does not read")
	}
	help := affinity(t, "", "serve", "--help")
	for _, name := range regexp.MustCompile(` --[a-z-]+`).FindAllString(" "+string(flags[1]), -1) {
		help.wants(t, cli.ExitOK, name+" ")
	}
}

// What cannot be served is said in words.
func TestServeRefuses(t *testing.T) {
	t.Setenv(operator.Variable, "")
	folder := t.TempDir()
	data, newer := filepath.Join(folder, "data"), filepath.Join(folder, "newer")
	must(t, os.Mkdir(newer, 0o700))
	must(t, os.WriteFile(filepath.Join(newer, "format"), []byte("999\n"), 0o600))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	used := filepath.Join(folder, "used")
	user, err := stack.Start(t.Context(), stack.Options{Data: used})
	must(t, err)
	defer user.Close()
	nothing := file(t, "nothing", "no PEM")
	for line, want := range map[string]string{
		"serve":                                                               "name it with --data DIR",
		"serve --data D --app shop":                                           "affinity app create",
		"serve --data D --key secret":                                         "affinity app create",
		"serve --data D --addr 0.0.0.0:8080":                                  "plain HTTP shows keys on the way: give --tls-host",
		"serve --data D --addr 8080":                                          "must be host:port",
		"serve --data D --forwarded -1":                                       "must be 0 (no proxy) to 10",
		"serve --data D --host shop.example.com":                              "must be HOST=APP",
		"serve --data D --host https://shop.example.com=a":                    "must be HOST=APP",
		"serve --data D --host shop.example.com:443=a":                        "must be HOST=APP",
		"serve --data D --host a.example=a --host A.example=b":                "serves app a already: name it once",
		"serve --data D --admin 0.0.0.0:9090":                                 "must be host:port of loopback",
		"serve --data D --admin unix:socket":                                  "unix:/path",
		"serve --data D --log-level loud":                                     "debug, info, warn or error",
		"serve --data D --tls-cert x":                                         "give both",
		"serve --data D --tls-cert x --tls-key y --tls-host shop.example.com": "give one of them",
		"serve --data D --tls-host shop":                                      "the full name of a host",
		"serve --data D --acme-directory http://127.0.0.1":                    "give --tls-host too",
	} {
		affinity(t, "", strings.Fields(strings.ReplaceAll(line, " D", " "+data))...).wants(t, cli.ExitUsage, want)
	}
	at := " --addr 127.0.0.1:0 --admin 127.0.0.1:0"
	for line, want := range map[string]string{
		"serve --data D --tls-cert /nowhere --tls-key " + nothing:            "must be a certificate and its key, as PEM",
		"serve --data D --tls-cert " + nothing + " --tls-key " + nothing:     "must be a certificate and its key, as PEM",
		"serve --admin 127.0.0.1:0 --data D --addr " + taken.Addr().String(): "give another address, or end the process",
		"serve --addr 127.0.0.1:0 --data D --admin " + taken.Addr().String(): "give another address, or end the process",
		"serve --data " + used + at:                                          "is in use by another process: end that process, or use another folder",
		"serve --data " + newer + at:                                         `has format "999" and this version reads format`,
		"serve --data " + nothing + at:                                       "not a directory",
		"serve --data /proc/affinity" + at:                                   "open the data folder",
	} {
		affinityWith(t, t.Context(), "", func(tl *program) { tl.start = local.StartStack },
			strings.Fields(strings.ReplaceAll(line, " D", " "+data))...).wants(t, cli.ExitFailed, want)
	}
}
