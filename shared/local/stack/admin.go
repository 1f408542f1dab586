package stack

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// adminDoor is the operators' way in: their routes, metrics, profiles of the process, whether
// it is ready, and the API of all apps, so that every command has one address. It answers before the
// engine does, and until the engine has ended.
type adminDoor struct {
	state    atomic.Pointer[string] // what the engine does while it is not ready
	gate     sync.RWMutex           // locked while the engine is not ready; requests hold it for reading
	inner    http.Handler
	lacking  func() error // returns why events are refused, or nil
	profiles http.Handler
	socket   bool // only the owner of the socket's file can call
	requests context.Context
	cancel   context.CancelFunc
}

// startAdmin serves the operators' listener; nil if there is none.
func (s *Stack) startAdmin(o Options) (*adminDoor, error) {
	if o.Admin == "" {
		return nil, nil
	}
	l, socket, err := listenAdmin(o.Admin)
	if err != nil {
		return nil, fmt.Errorf("the operators' address: %w", err)
	}
	profiles := http.NewServeMux()
	profiles.HandleFunc("/debug/pprof/", pprof.Index)
	profiles.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	profiles.HandleFunc("/debug/pprof/profile", pprof.Profile)
	profiles.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	profiles.HandleFunc("/debug/pprof/trace", pprof.Trace)
	d := &adminDoor{profiles: profiles, socket: socket}
	d.requests, d.cancel = context.WithCancel(context.Background())
	d.state.Store(new("starts"))
	d.gate.Lock()
	s.serve(l, nil, d, o.Log)
	return d, nil
}

// listenAdmin listens at host:port or unix:PATH. Only its owner may use the socket.
func listenAdmin(at string) (l net.Listener, socket bool, err error) {
	path, socket := strings.CutPrefix(at, "unix:")
	if !socket {
		l, err = net.Listen("tcp", at)
		return l, false, err
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		if c, err := net.Dial("unix", path); err == nil {
			_ = c.Close()
		} else { // a process that was killed left it
			_ = os.Remove(path)
		}
	}
	if l, err = net.Listen("unix", path); err != nil {
		return nil, true, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, true, err
	}
	return l, true, nil
}

// open lets requests in. lacking returns why events are refused, or nil.
func (d *adminDoor) open(inner http.Handler, lacking func() error) {
	d.inner, d.lacking = inner, lacking
	d.state.Store(nil)
	d.gate.Unlock()
}

// drain lets no more requests in and waits for those in progress, which are canceled after drainTime.
func (d *adminDoor) drain() error {
	d.state.Store(new("ends"))
	defer time.AfterFunc(drainTime, d.cancel).Stop()
	d.gate.Lock()
	return nil
}

// ServeHTTP serves a request of this machine that no web page of another one sent.
func (d *adminDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if d.socket {
		r.RemoteAddr = "127.0.0.1:0"
	}
	for _, origin := range r.Header.Values("Origin") {
		if !localOrigin(origin) {
			_ = httpapi.WriteMessage(w, http.StatusForbidden, "The operators' address answers no web pages of other machines")
			return
		}
	}
	switch path := r.URL.Path; {
	case !httpapi.Loopback(r.Host):
		_ = httpapi.WriteMessage(w, http.StatusMisdirectedRequest,
			"The operators' address answers for localhost and 127.0.0.1 only: call it by one of them")
	case path == "/readyz":
		d.ready(w)
	case strings.HasPrefix(path, "/debug/pprof/"):
		d.profiles.ServeHTTP(w, r)
	case !d.gate.TryRLock():
		d.ready(w)
	default:
		defer d.gate.RUnlock()
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(d.requests, cancel)()
		// An app with a host of its own is reached here too.
		app := r.Header.Get("X-Algolia-Application-Id")
		if app == "" {
			app = auth.AnyCustomer
		}
		r.Header.Set(auth.CustomerHeader, app)
		d.inner.ServeHTTP(w, r.WithContext(ctx))
	}
}

// ready says whether the engine answers, and takes events.
func (d *adminDoor) ready(w http.ResponseWriter) {
	if state := d.state.Load(); state != nil {
		_ = httpapi.WriteMessage(w, http.StatusServiceUnavailable, "The engine "+*state+": ask again in a moment")
		return
	}
	if why := d.lacking(); why != nil {
		_ = httpapi.WriteMessage(w, http.StatusServiceUnavailable, "The engine answers, but takes no events: "+why.Error())
		return
	}
	_ = httpapi.WriteMessage(w, http.StatusOK, "The engine is ready")
}
