package operator

import (
	"crypto/subtle"
	"log/slog"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// Handler serves the paths that begin with /local. It answers a request that comes from this machine
// and carries the operator's token. To a request from elsewhere or from a web page there is no such
// path. now is the engine's clock, moves.Runner nil in an engine without regions.
func Handler(log *slog.Logger, token string, place Place, apps Store, reader usage.Reader, now func() time.Time,
	c config.Cipher, deletions Deletions,
	regions config.Regions, moves Moves) http.Handler {
	rt := httpapi.NewRouter(log)
	rt.Life = time.Minute
	rt.Handle("GET /local", func(w http.ResponseWriter, _ *http.Request) error {
		return httpapi.WriteJSON(w, http.StatusOK, place)
	})
	handleApps(rt, apps, place.Limits, c, regions)
	handleDeletions(rt, deletions)
	handleMoves(rt, moves)
	handleUsage(rt, apps, reader, now)
	return Guard(token, rt)
}

// Guard lets requests of the operator through to h.
func Guard(token string, h http.Handler) http.Handler {
	want := []byte("Bearer " + token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !local(r):
			_ = httpapi.WriteMessage(w, http.StatusNotFound, httpapi.UnknownPath)
		case subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1:
			_ = httpapi.WriteMessage(w, http.StatusUnauthorized, refused)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

const refused = "This path needs the operator's token, as `authorization: Bearer TOKEN`: `affinity up` prints " +
	"it, `affinity serve` has it in its folder, and both take it from " + Variable

// local reports whether a program of this machine sent the request. A browser
// says with Origin which page did.
func local(r *http.Request) bool {
	return httpapi.Loopback(r.RemoteAddr) && httpapi.Loopback(r.Host) && len(r.Header.Values("Origin")) == 0
}
