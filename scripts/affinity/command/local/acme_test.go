package local

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/letsencrypt/challtestsrv"
	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"

	"github.com/affinityengine/affinity/shared/local/ports"
)

// serveHandshakes shakes hands until the listener closes.
func serveHandshakes(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			_ = conn.(*tls.Conn).Handshake()
			_ = conn.Close()
		}()
	}
}

// authority is Let's Encrypt's test authority, for which each name leads to this machine at
// the port of an engine.
func authority(t *testing.T, port int) (server *httptest.Server, roots *x509.CertPool) {
	t.Helper()
	t.Setenv("PEBBLE_VA_NOSLEEP", "1")
	t.Setenv("PEBBLE_WFE_NONCEREJECT", "0")
	log := stdlog.New(io.Discard, "", 0)
	names, err := ports.Free()
	must(t, err)
	dns, err := challtestsrv.New(challtestsrv.Config{DNSAddrs: []string{names}, Log: log})
	must(t, err)
	dns.SetDefaultDNSIPv4("127.0.0.1")
	dns.SetDefaultDNSIPv6("")
	go dns.Run()
	t.Cleanup(dns.Shutdown)
	store := db.NewMemoryStore()
	signer := ca.New(log, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {Description: "default"}})
	front := wfe.New(log, store, va.New(log, 1, port, true, names, store), signer, []string{"pebble.test"}, true, false, 1, 1)
	server = httptest.NewTLSServer(front.Handler())
	t.Cleanup(server.Close)
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(signer.GetRootCert(0).PEM())
	return server, roots
}

// An authority gives a certificate for the named host, and for no other. It is in the folder at the next start.
func TestCertificateByACME(t *testing.T) {
	address, err := ports.Free()
	must(t, err)
	at, err := net.ResolveTCPAddr("tcp", address)
	must(t, err)
	server, roots := authority(t, at.Port)
	data := t.TempDir()
	serial := func(directory string) string {
		t.Helper()
		c := certificates{names: []string{"shop.example.com"}, directory: directory, client: server.Client()}
		config, err := c.config(data, slog.New(slog.DiscardHandler))
		must(t, err)
		l, err := tls.Listen("tcp", address, config)
		must(t, err)
		defer l.Close()
		go serveHandshakes(l)
		if conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, ServerName: "evil.example.com"}); err == nil {
			_ = conn.Close()
			t.Error("another host has a certificate too")
		}
		conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, ServerName: "shop.example.com"})
		must(t, err)
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	first := serial(server.URL + wfe.DirectoryPath)
	if next := serial("http://127.0.0.1:1/nobody"); next != first {
		t.Errorf("the next start has certificate %s, want %s of the folder", next, first)
	}
	files, err := os.ReadDir(filepath.Join(data, "acme"))
	must(t, err)
	if len(files) != 2 {
		t.Errorf("the folder has %v, want the account and the certificate", files)
	}
	for _, f := range files {
		info, err := f.Info()
		must(t, err)
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", f.Name(), info.Mode())
		}
	}
}
