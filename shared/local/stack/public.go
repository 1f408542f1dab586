package stack

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/affinityengine/affinity/functions/console"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// servePublic serves the public functions, and what operators have of their own: at the
// operators' listener if there is one, or else beside the functions.
func (s *Stack) servePublic(o Options, door *adminDoor) error {
	b := s.Backends
	secret, err := s.consoleSecret()
	if err != nil {
		return err
	}
	public, err := net.Listen("tcp", address(o.Addr))
	if err != nil {
		return fmt.Errorf("public functions: %w", err)
	}
	if door != nil || !loopback(public.Addr()) {
		b.refuseDemoKey()
	}
	s.URL = "http://" + reachable(public.Addr())
	if o.TLS != nil {
		s.URL = "https://" + reachable(public.Addr())
	}
	s.links = console.NewLinks(time.Now)
	apps := operatedApps{auditlog.NewOperated(b.Config, auditlog.New(b.AuditLog())), b.CachedConfig, b.Residents}
	operated := operator.Handler(o.Log, s.Operator, s.place, apps, apps,
		b.Store.Usage, b.Now, b.Cipher, b.Deletions, b.Regions,
		operator.Moves{Runner: b.Moves, Recorder: auditlog.New(b.AuditLog()), Regions: b.Regions, Apps: b.Config})
	check := newHealth(s.disk.Records(spaceHealth), s.disk.Sync, time.Now)
	s.prove(check, provenAfter, o.Log)
	saves := s.startBackups(o)
	own := httpapi.Prefixes{{Prefix: operator.BackupPath, Handler: operator.Guard(s.Operator, saves.handler(b.Log))},
		{Prefix: "/local", Handler: operated}, {Prefix: "/metrics", Handler: measured(b.Log, s.metrics)}}
	functions := publicFunctions(b, saves.watch(o.Watch), check, secret, s.links)
	if door == nil {
		functions = append(own, functions...)
	}
	space := &room{check: s.disk.NearlyFull, log: o.Log}
	kept := func(h http.Handler) http.Handler { return durable(s.disk.Sync, space.guard(h)) }
	s.serve(public, o.TLS, guardPublic(o.answered(public.Addr()), o.Hosts, o.Origins, kept(functions)), o.Log)
	if door != nil {
		door.open(kept(append(own, functions...)), space.lacking)
		s.onClose(door.drain)
	}
	return nil
}

// answered says which hosts and origins the public address answers.
func (o Options) answered(at net.Addr) answered {
	switch {
	case o.Admin != "" && len(o.Hosts) > 0:
		return onlyHosts
	case loopback(at) && o.TLS == nil && o.Forwarded == 0:
		return thisMachine
	}
	return everything
}

// reachable is an address at which a browser on this machine finds a listener. One on all
// addresses, such as 0.0.0.0, has none of its own.
func reachable(at net.Addr) string {
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
	}
	return at.String()
}
