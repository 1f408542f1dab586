package export_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/telemetry/export"
)

// The exporter google sends spans under the account of the process, with its project.
func TestGoogle(t *testing.T) {
	const child = "AFFINITY_TEST_GOOGLE"
	if os.Getenv(child) != "" {
		e, err := export.Start(t.Context(), quiet)
		must.Succeed(t, err)
		_, span := otel.Tracer("test").Start(t.Context(), "read")
		span.End()
		must.Succeed(t, e.Shutdown(t.Context()))
		return
	}
	var got []string
	mux := http.NewServeMux()
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"of-the-account","token_type":"Bearer","expires_in":3600}`)
	})
	mux.HandleFunc("POST /v1/traces", func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !strings.Contains(string(body), "gcp.project_id") || !strings.Contains(string(body), "my-project") {
			t.Errorf("spans without a project: %q, %v", body, err)
		}
		got = append(got, r.Header.Get("Authorization"))
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	cmd := exec.Command(os.Args[0], "-test.run", "TestGoogle$", "-test.v")
	cmd.Env = append(os.Environ(), child+"=1", "OTEL_TRACES_EXPORTER=google", "GOOGLE_CLOUD_PROJECT=my-project",
		"GOOGLE_APPLICATION_CREDENTIALS="+account(t, server.URL+"/token"), "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+server.URL+"/v1/traces")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Fatalf("%v\n%s", err, out)
	}
	if len(got) != 1 || got[0] != "Bearer of-the-account" {
		t.Errorf("spans came with %q", got)
	}
}

// account writes the credentials of a service account, whose tokens are at a URL.
func account(t *testing.T, tokens string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must.Succeed(t, err)
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "fn@my-project.iam.gserviceaccount.com", "token_uri": tokens, "private_key_id": "1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
	})
	must.Succeed(t, err)
	path := filepath.Join(t.TempDir(), "account.json")
	must.Succeed(t, os.WriteFile(path, text, 0o600))
	return path
}
