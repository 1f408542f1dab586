//go:build unix

package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/ports"
)

// nonroot is the user of the image, and its group.
const nonroot = 65532

const imageKey = "a-key-of-the-image-test"

// process returns a command in the image's files: for root in a root directory of
// their own, without permissions, so that nothing but these files can be needed.
func (m image) process(t *testing.T, port string, environment []string, args ...string) *exec.Cmd {
	t.Helper()
	args = append([]string(nil), args...)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], ":"+m.port, ":"+port)
		if os.Getuid() != 0 && (args[i] == m.volume || i == 0) {
			args[i] = filepath.Join(m.root, args[i])
		}
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env, cmd.Dir = append(environment, "AFFINITY_URL=http://127.0.0.1:"+port), m.workdir
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: m.root, Credential: &syscall.Credential{Uid: nonroot, Gid: nonroot}}
	} else {
		cmd.Dir = filepath.Join(m.root, m.workdir)
	}
	return cmd
}

// start starts the image's default command, and returns once its health check
// passes.
func (m image) start(t *testing.T, port string) *exec.Cmd {
	t.Helper()
	cmd := m.process(t, port, []string{"AFFINITY_KEY=" + imageKey}, append(m.entrypoint, m.command...)...)
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if out, err := m.process(t, port, nil, append(m.health, "--wait", "1m")...).CombinedOutput(); err != nil {
		t.Fatalf("the health check fails: %v\n%s", err, out)
	}
	return cmd
}

// TestImage builds the image's files, starts the default command with a key of its
// own, kills it and starts it again: the data are in the volume.
func TestImage(t *testing.T) {
	must.Start(t, must.Builds)
	m := built(t)
	port := freePort(t)
	engine := m.start(t, port)
	c := engineAt(t, port, imageKey)
	const set = `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":7}],"facetsScoring":[],"personalizationImpact":50}`
	if err := c.Strategies().SetJSON(t.Context(), []byte(set), client.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := engineAt(t, port, "demokey").Strategies().SetJSON(t.Context(), []byte(set), client.SetOptions{}); err == nil {
		t.Error("the engine accepts the key that everybody knows")
	}
	_ = engine.Process.Kill()
	_ = engine.Wait() // the error is that it was killed
	again := m.start(t, port)
	got, err := c.Do(t.Context(), "GET", "/1/strategies/personalization", nil)
	if err != nil || !strings.Contains(string(got), `"score":7`) {
		t.Errorf("after a kill the strategy is %s (%v)", got, err)
	}
	if err := again.Process.Signal(syscall.SIGTERM); err != nil { // as docker stop does
		t.Fatal(err)
	}
	if err := again.Wait(); err != nil {
		t.Errorf("the engine does not end cleanly at SIGTERM: %v", err)
	}
	if out, err := m.process(t, port, nil, m.health...).CombinedOutput(); err == nil {
		t.Errorf("the health check passes without an engine: %s", out)
	}
	m.refusesForeignVolume(t, port)
	out, err := m.process(t, port, nil, append(m.entrypoint, m.command...)...).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), "AFFINITY_KEY") {
		t.Errorf("without a key: %v, want exit code 2 and a word of AFFINITY_KEY\n%s", err, out)
	}
}

// refusesForeignVolume starts the image with a volume that belongs to root, as that
// of a folder that Docker made.
func (m image) refusesForeignVolume(t *testing.T, port string) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	m.volume += "-of-root"
	if err := os.Mkdir(filepath.Join(m.root, m.volume), 0o755); err != nil {
		t.Fatal(err)
	}
	args := append(slices.Clone(m.entrypoint), "up", "--addr", "0.0.0.0:"+m.port, "--data", m.volume)
	out, err := m.process(t, port, []string{"AFFINITY_KEY=" + imageKey}, args...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "may not write the folder "+m.volume) {
		t.Errorf("with a folder of root: %v, want an error that says so\n%s", err, out)
	}
}

func engineAt(t *testing.T, port, key string) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{URL: "http://127.0.0.1:" + port, App: "demo", Key: key, Retry: client.NoRetry})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func freePort(t *testing.T) string {
	t.Helper()
	address, err := ports.Free()
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestComposeFitsTheImage compares the compose file with the Dockerfile.
func TestComposeFitsTheImage(t *testing.T) {
	text, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Services map[string]struct {
			Build          struct{ Context, Dockerfile string }
			Environment    map[string]string
			Ports, Volumes []string
		}
		Volumes map[string]any
	}
	if err := yaml.Unmarshal(text, &compose); err != nil {
		t.Fatal(err)
	}
	s := compose.Services["affinity"]
	dockerfile, err := os.ReadFile(filepath.Join(s.Build.Context, s.Build.Dockerfile))
	if err != nil {
		t.Fatalf("the compose file names no Dockerfile: %v", err)
	}
	says := func(instruction string) string {
		m := regexp.MustCompile(`(?m)^` + instruction + ` (.*)$`).FindSubmatch(dockerfile)
		if m == nil {
			t.Fatalf("the Dockerfile has no %s", instruction)
		}
		return string(m[1])
	}
	if _, err := os.Stat(filepath.Join(s.Build.Context, "go.mod")); err != nil {
		t.Errorf("the context is not the root of the checkout: %v", err)
	}
	if want := "127.0.0.1:8080:" + says("EXPOSE"); len(s.Ports) != 1 || s.Ports[0] != want {
		t.Errorf("ports %q, want %s", s.Ports, want)
	}
	if want := "data:" + says("VOLUME"); len(s.Volumes) != 1 || s.Volumes[0] != want {
		t.Errorf("volumes %q, want %s", s.Volumes, want)
	}
	if _, ok := compose.Volumes["data"]; !ok || s.Environment["AFFINITY_KEY"] == "" {
		t.Error("the compose file lacks the volume data or AFFINITY_KEY")
	}
}
