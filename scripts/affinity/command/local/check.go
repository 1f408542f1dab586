package local

import (
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api/checkup"
	"github.com/affinityengine/affinity/shared/local/disk"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// look looks at all that serve needs for a start, and starts nothing. The faults are those of the settings.
func (f *serveFlags) look(t *command.Tool, o Options, faults []error) error {
	d := diagnosis{}
	d.found("settings", "each is known and valid", faults...)
	if len(faults) == 0 {
		d.certificate(f, o, time.Now())
		d.found("address", o.Addr+" is free", bindable(o.Addr))
		d.found("admin", o.Admin+" is free", bindable(o.Admin))
		d.found(checkFolder, o.Data+" can be used, and its disk has room", disk.Try(o.Data)...)
		if !f.acceptClock {
			d.found(checkClock, "fits the last use of the folder", stack.ClockFault(o.Data, time.Now()))
		}
		if to := o.Backups.To; to != "" {
			d.found("backups", to+" can be written", disk.Writable(to))
		}
	}
	return d.print(t)
}

// found adds a check for each fault, or one that says that all is well.
func (d *diagnosis) found(name, well string, faults ...error) {
	faults = slices.DeleteFunc(faults, func(err error) bool { return err == nil })
	for _, err := range faults {
		d.add(name, checkup.Fault, err.Error(), "")
	}
	if len(faults) == 0 {
		d.add(name, checkup.OK, well, "")
	}
}

// certificate looks at what clients see of TLS.
func (d *diagnosis) certificate(f *serveFlags, o Options, now time.Time) {
	const name = "certificate"
	switch {
	case f.cert != "":
		pair, err := o.TLS.GetCertificate(nil)
		if err != nil {
			d.found(name, "", err)
			return
		}
		var faults []error
		if leaf := pair.Leaf; now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
			faults = append(faults, fmt.Errorf("--tls-cert %s is valid from %s to %s and it is %s: renew it, or set the "+
				"clock", f.cert, leaf.NotBefore.Format(time.RFC3339), leaf.NotAfter.Format(time.RFC3339),
				now.UTC().Format(time.RFC3339)))
		}
		d.found(name, f.cert+" is valid until "+pair.Leaf.NotAfter.Format(time.RFC3339),
			append(faults, uncovered(f.cert, pair.Leaf, o)...)...)
	case len(f.names) > 0:
		d.found(name, "comes by ACME for "+strings.Join(f.names, ", "))
	default:
		d.found(name, "none: plain HTTP")
	}
}

// uncovered returns the hosts that a certificate is not for.
func uncovered(file string, leaf *x509.Certificate, o Options) (faults []error) {
	for _, host := range slices.Sorted(maps.Keys(o.Hosts)) {
		if err := leaf.VerifyHostname(host); err != nil {
			faults = append(faults, fmt.Errorf("--tls-cert %s is not for %s, which --host names: get one that is (%w)",
				file, host, err))
		}
	}
	return faults
}

// bindable returns why a server cannot listen at host:port or unix:PATH.
func bindable(at string) error {
	if path, socket := strings.CutPrefix(at, "unix:"); socket {
		if c, err := net.Dial("unix", path); err == nil {
			return errors.Join(advised(fmt.Errorf("listen at %s: %w", at, syscall.EADDRINUSE)), c.Close())
		}
		return disk.Writable(filepath.Dir(path))
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		return advised(err)
	}
	return l.Close()
}
