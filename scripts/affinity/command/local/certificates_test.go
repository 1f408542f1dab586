package local

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/affinityengine/affinity/shared/api/checkup"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// pair returns a certificate of a number and its key, as PEM.
func pair(t *testing.T, number int64) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(number), DNSNames: []string{"shop.example.com"},
		NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	must(t, err)
	text, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A renewed pair is served without a restart. While the files are no pair, the one before is.
func TestCertificateFilesAreReadAgain(t *testing.T) {
	folder, log, now := t.TempDir(), &bytes.Buffer{}, time.Unix(1000, 0)
	f := &certificateFiles{cert: filepath.Join(folder, "cert"), key: filepath.Join(folder, "key"),
		log: slog.New(slog.NewTextHandler(log, nil)), now: func() time.Time { return now }}
	write := func(file string, text []byte) {
		must(t, os.WriteFile(file, text, 0o600))
		must(t, os.Chtimes(file, now, now))
	}
	serves := func(want int64) {
		t.Helper()
		c, err := f.get(nil)
		must(t, err)
		if got := c.Leaf.SerialNumber.Int64(); got != want {
			t.Errorf("serves certificate %d, want %d", got, want)
		}
	}
	cert, key := pair(t, 1)
	write(f.cert, cert)
	write(f.key, key)
	must(t, f.load())
	serves(1)
	now = now.Add(reloadEvery)
	cert, key = pair(t, 2)
	write(f.cert, cert)
	serves(1)
	if !strings.Contains(log.String(), "the certificate before goes on") {
		t.Errorf("the log of a half pair: %s", log)
	}
	write(f.key, key)
	now = now.Add(reloadEvery / 2)
	serves(1) // not read yet
	now = now.Add(reloadEvery)
	serves(2)
	must(t, os.Remove(f.key))
	now = now.Add(reloadEvery)
	serves(2)
}

// The certificate of files is served to clients.
func TestCertificateOfFiles(t *testing.T) {
	folder := t.TempDir()
	c := certificates{cert: filepath.Join(folder, "cert"), key: filepath.Join(folder, "key")}
	cert, key := pair(t, 7)
	must(t, os.WriteFile(c.cert, cert, 0o600))
	must(t, os.WriteFile(c.key, key, 0o600))
	config, err := c.config(folder, slog.New(slog.DiscardHandler))
	must(t, err)
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	must(t, err)
	defer l.Close()
	go serveHandshakes(l)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: roots, ServerName: "shop.example.com"})
	must(t, err)
	must(t, conn.Close())
}

// The least of the machine's memory and that of each control group above the process counts.
func TestMemory(t *testing.T) {
	of := func(files ...string) int64 {
		root := fstest.MapFS{}
		for i := 0; i < len(files); i += 2 {
			root[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
		}
		return memory(root)
	}
	const meminfo, group = "proc/meminfo", "proc/self/cgroup"
	machine := "MemTotal:        2000000 kB\nMemFree:          100 kB\n"
	for got, want := range map[int64]int64{
		of():                 0,
		of(meminfo, machine): 2_000_000 << 10,
		of(meminfo, machine, group, "0::/a/b\n", "sys/fs/cgroup/a/memory.max", "1000\n", "sys/fs/cgroup/a/b/memory.max", "max\n"): 1000,
		of(meminfo, machine, group, "0::/\n", "sys/fs/cgroup/memory.max", "2000\n"):                                               2000,
		of(meminfo, machine, "sys/fs/cgroup/memory/memory.limit_in_bytes", "3000\n"):                                              3000,
		of(meminfo, "MemTotal: 1 kB\n", "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"):                    1024,
	} {
		if got != want {
			t.Errorf("%d bytes, want %d", got, want)
		}
	}
}

// A check says what clients would refuse of a certificate.
func TestCertificateCheck(t *testing.T) {
	folder := t.TempDir()
	f := &serveFlags{certificates: certificates{cert: filepath.Join(folder, "cert"), key: filepath.Join(folder, "key")}}
	cert, key := pair(t, 1)
	must(t, os.WriteFile(f.cert, cert, 0o600))
	must(t, os.WriteFile(f.key, key, 0o600))
	o := Options{Hosts: auth.Hosts{"shop.example.com": "shop", "other.example.com": "other"}}
	var err error
	o.TLS, err = f.config(folder, nil)
	must(t, err)
	for now, want := range map[time.Time][]string{
		time.Now():                    {"is not for other.example.com, which --host names: get one that is"},
		time.Now().Add(2 * time.Hour): {": renew it, or set the clock", "is not for other.example.com"},
	} {
		d := diagnosis{}
		d.certificate(f, o, now)
		if len(d.Checks) != len(want) {
			t.Fatalf("at %s: %v, want %q", now, d.Checks, want)
		}
		for i, c := range d.Checks {
			if c.State != checkup.Fault || !strings.Contains(c.Text, want[i]) {
				t.Errorf("at %s: %v, want %q", now, c, want[i])
			}
		}
	}
}
