package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

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
		return startTool(t, environment, &log, unitCommand(t, data, addr, admin)...)
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
	if n := strings.Count(log.String(), `"sync":true`); n != 2 {
		t.Errorf("%d of two starts say that they sync: %s", n, log.String())
	}
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

// unitCommand returns what the unit of systemd starts with the settings of the package, and other folders and addresses.
func unitCommand(t *testing.T, data, addr, admin string) (args []string) {
	t.Helper()
	unit, err := os.ReadFile("../release/affinity.service")
	must(t, err)
	_, command, _ := strings.Cut(string(unit), "\nExecStart=/usr/bin/affinity ")
	command, _, _ = strings.Cut(command, "\n")
	settings, err := os.ReadFile("../release/affinity.conf")
	must(t, err)
	text := strings.ReplaceAll(string(settings), "/var/lib/affinity", data)
	path := file(t, "affinity.conf", text, "addr = "+addr, "admin="+admin)
	return strings.Fields(strings.Replace(command, "/etc/affinity/affinity.conf", path, 1))
}

// Each setting that the package shows, and each of the machine that Terraform makes, is a flag.
func TestServeSettings(t *testing.T) {
	help := affinity(t, "", "serve", "--help")
	for path, form := range map[string]string{
		"../release/affinity.conf":                       `(?m)^#?([a-z-]+) = `,
		"../../terraform/single/tests/single.tftest.hcl": `(?:\\n|content == ")([a-z-]+) = `,
	} {
		text, err := os.ReadFile(path)
		must(t, err)
		names := regexp.MustCompile(form).FindAllStringSubmatch(string(text), -1)
		if len(names) < 4 {
			t.Errorf("%s has %d settings in a form that this test reads", path, len(names))
		}
		for _, name := range names {
			help.wants(t, cli.ExitOK, "--"+name[1]+" ")
		}
	}
}

// A flag goes before its variable, and that before the file. What the file says wrong is said with its line.
func TestServeConfig(t *testing.T) {
	folder := t.TempDir()
	starts := func(settings, line string) (o local.Options, got ran) {
		t.Helper()
		args := append(strings.Fields(line), "serve", "--config", file(t, "shop.conf", settings))
		got = affinityWith(t, t.Context(), "", func(tl *program) {
			tl.start = func(_ context.Context, with local.Options) (local.RunningStack, error) {
				o = with
				return nil, errors.New("it starts")
			}
		}, args...)
		return o, got
	}
	t.Setenv("AFFINITY_PACK_WINDOW", "20ms")
	t.Setenv("AFFINITY_REGIONS", "eu,us")
	o, got := starts("# A shop.\n\n data="+folder+"\npack-window = 10ms\nregions = asia\nhost = a.example=a\nhost = b.example=b\n"+
		"sync = false\nforwarded = 2\nbackup = /backups\nbackup-every = 2h", "--forwarded 3")
	got.wants(t, cli.ExitFailed, "it starts")
	if o.Data != folder || o.PackWindow != 20*time.Millisecond || len(o.Regions) != 2 || len(o.Hosts) != 2 || o.Sync ||
		o.Forwarded != 3 || o.Backups.Every != 2*time.Hour {
		t.Errorf("it starts with %+v", o)
	}
	for settings, want := range map[string]string{
		"data = d\ncolour = red":                      `shop.conf:2: there is no setting "colour": `,
		"config = other":                              `shop.conf:1: there is no setting "config"`,
		"key = secret":                                `shop.conf:1: there is no setting "key"`,
		"backup = d\n\n\nbackup = e":                  "shop.conf:4: backup has a value already: name it once",
		"--data d":                                    `shop.conf:1: "--data d" must be name = value`,
		"backup-every = often":                        "shop.conf:1: invalid argument",
		"host = a.example=a\nhost = a.example=b":      "shop.conf:2: --host a.example=b: the host serves app a already: name it once",
		"backup-keep = 3":                             "shop.conf:1: --backup-keep is about the backups of --backup DIR",
		"tls-host = a.example\nhost = b.example=b":    "shop.conf:1: --tls-host a.example gets a certificate, but --host names other hosts",
		"forwarded = 11\nadmin = x\nlog-level = loud": `shop.conf:2: --admin "x" must be host:port`,
	} {
		_, got := starts(settings, "--data d")
		got.wants(t, cli.ExitFailed, want)
	}
	t.Setenv("AFFINITY_PACK_WINDOW", "long")
	_, got = starts("", "")
	got.wants(t, cli.ExitFailed, "the environment variable AFFINITY_PACK_WINDOW: invalid argument")
	affinity(t, "", "serve", "--config", "/nowhere.conf").wants(t, cli.ExitFailed, "read the settings of --config: open /nowhere.conf")
}

// A check says all that is wrong, each with what to do, and starts nothing.
func TestServeCheck(t *testing.T) {
	folder := t.TempDir()
	data := filepath.Join(folder, "data")
	look := func(code int, line string, want ...string) {
		t.Helper()
		line = "serve --check --addr 127.0.0.1:0 --admin 127.0.0.1:0 --data " + data + " " + line
		affinity(t, "", strings.Fields(line)...).wants(t, code, want...)
	}
	look(cli.ExitOK, "--backup "+folder+"/backups", "ok       folder", "ok       clock", "ok       backups", "no faults")
	if names, err := os.ReadDir(folder); len(names) != 0 || err != nil {
		t.Errorf("the check leaves %v (%v)", names, err)
	}
	look(cli.ExitFailed, "--forwarded 11 --log-level loud", "--forwarded 11: must be", `--log-level "loud": must be`, "2 checks found")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	socket := filepath.Join(folder, "socket")
	door, err := net.Listen("unix", socket)
	must(t, err)
	defer door.Close()
	look(cli.ExitFailed, "--addr "+taken.Addr().String()+" --admin unix:"+socket, "fault    address", "fault    admin",
		"give another address, or end the process that serves there", "2 checks found")
	user, err := stack.Start(t.Context(), stack.Options{Data: data})
	must(t, err)
	look(cli.ExitFailed, "", "is in use by another process: end that process, or use another folder")
	must(t, user.Close())
	must(t, os.Chmod(data, 0o750))
	look(cli.ExitFailed, "", "which holds keys: chmod 700 "+data)
	must(t, os.Chmod(data, 0o700))
	look(cli.ExitOK, "")
	must(t, os.WriteFile(filepath.Join(data, "format"), []byte("999\n"), 0o600))
	look(cli.ExitFailed, "", `has format "999" and this version reads format`)
	must(t, os.WriteFile(filepath.Join(data, "clock"), []byte("2999-01-01T00:00:00Z\n"), 0o600))
	look(cli.ExitFailed, "", "fault    folder", "fault    clock", "set the clock, such as with timedatectl", "2 checks found")
	look(cli.ExitFailed, "--accept-clock", "1 check found")
	must(t, os.RemoveAll(data))
	must(t, os.WriteFile(data, nil, 0o600))
	look(cli.ExitFailed, "", data+" is not a directory: name another folder")
}

// fullDisk is a disk without room.
type fullDisk struct{ vfs.FS }

func (fullDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{TotalBytes: 1 << 40}, nil
}

// A clock far from the last use of the folder, and a disk without room, keep an engine from starting.
func TestServeDoubts(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	user, err := stack.Start(t.Context(), stack.Options{Data: data})
	must(t, err)
	must(t, user.Close())
	serve := func(want string, flags ...string) {
		t.Helper()
		affinityWith(t, t.Context(), "", func(tl *program) {
			tl.start = func(ctx context.Context, _ local.Options) (local.RunningStack, error) {
				_, err := stack.Start(ctx, stack.Options{Data: data, Files: fullDisk{vfs.Default}})
				return nil, err
			}
		}, append([]string{"serve", "--data", data}, flags...)...).wants(t, cli.ExitFailed, want)
	}
	serve("MB of room: no space left on device: free some, or copy the folder to a larger disk")
	for _, used := range []time.Duration{10 * time.Minute, -32 * 24 * time.Hour} {
		at := time.Now().Add(used).UTC().Format(time.RFC3339)
		must(t, os.WriteFile(filepath.Join(data, "clock"), []byte(at+"\n"), 0o600))
		serve("the data folder was last used at " + at + ": set the clock, such as with timedatectl set-ntp true, or start with --accept-clock")
		serve("no space left on device", "--accept-clock")
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
		"up --sync":                                                           "--sync is about a folder",
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
		"serve --data /sys/affinity" + at:                                    "this user may not write the folder /sys/affinity: change its owner, or use another folder",
	} {
		affinityWith(t, t.Context(), "", func(tl *program) { tl.start = local.StartStack },
			strings.Fields(strings.ReplaceAll(line, " D", " "+data))...).wants(t, cli.ExitFailed, want)
	}
}
