package local

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// certificates are the flags of TLS as they were given.
type certificates struct {
	names     []string
	directory string
	cert, key string
	client    *http.Client // asks the authority; nil: the usual one
}

// wanted reports whether a flag asks for TLS.
func (c certificates) wanted() bool { return c.cert != "" || c.key != "" || len(c.names) > 0 }

// config returns the configuration of TLS; nil if no flag asks for it.
func (c certificates) config(data string, log *slog.Logger) (*tls.Config, error) {
	switch {
	case (c.cert == "") != (c.key == ""):
		return nil, cli.Usagef("--tls-cert and --tls-key are a pair: give both")
	case len(c.names) > 0 && c.cert != "":
		return nil, cli.Usagef("--tls-host gets a certificate and --tls-cert is one: give one of them")
	case c.directory != "" && len(c.names) == 0:
		return nil, cli.Usagef("--acme-directory is asked for the certificates of hosts: give --tls-host too")
	case len(c.names) > 0:
		return c.byACME(data)
	case c.cert != "":
		f := &certificateFiles{cert: c.cert, key: c.key, log: log, now: time.Now}
		if err := f.load(); err != nil {
			return nil, err
		}
		return &tls.Config{GetCertificate: f.get}, nil
	}
	return nil, nil
}

// byACME keeps the account and the certificates in the folder.
func (c certificates) byACME(data string) (*tls.Config, error) {
	for _, name := range c.names {
		if name = strings.ToLower(name); !hostForm.MatchString(name) || !strings.Contains(name, ".") {
			return nil, cli.Usagef("--tls-host %q must be the full name of a host, such as shop.example.com", name)
		}
	}
	m := &autocert.Manager{Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(filepath.Join(data, stack.ACMEDir)),
		HostPolicy: autocert.HostWhitelist(c.names...)}
	if c.directory != "" {
		m.Client = &acme.Client{DirectoryURL: c.directory, HTTPClient: c.client}
	}
	return m.TLSConfig(), nil
}

// reloadEvery is how long a change of the files may go unseen.
const reloadEvery = time.Second

// certificateFiles is a certificate that others renew.
type certificateFiles struct {
	cert, key string
	log       *slog.Logger
	now       func() time.Time

	mu      sync.Mutex
	looked  time.Time
	changed [2]time.Time // when the files changed that were loaded, or could not be
	pair    *tls.Certificate
}

// load loads the files, unless they are those that were loaded.
func (f *certificateFiles) load() error {
	f.looked = f.now()
	var changed [2]time.Time
	for i, file := range []string{f.cert, f.key} {
		info, err := os.Stat(file)
		if err != nil {
			return f.wrong(err)
		}
		changed[i] = info.ModTime()
	}
	if changed == f.changed {
		return nil
	}
	f.changed = changed
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return f.wrong(err)
	}
	f.pair = &pair
	return nil
}

func (f *certificateFiles) wrong(err error) error {
	return fmt.Errorf("--tls-cert %s and --tls-key %s must be a certificate and its key, as PEM, that this user may "+
		"read: %w", f.cert, f.key, err)
}

// get returns the certificate, that of the files before if they changed to no pair.
func (f *certificateFiles) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now().Sub(f.looked) >= reloadEvery {
		if err := f.load(); err != nil {
			f.log.Error("the certificate before goes on", "error", err)
		}
	}
	return f.pair, nil
}
