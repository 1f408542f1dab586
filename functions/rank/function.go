// Package rank is the public function for what pages wait for. It orders candidates
// for a user: the results of a search, or the items of a page. And it renders a
// user's profile as a part of the request to a search engine. The profile is in the
// table users, the filters of the candidates are in the table objects.
package rank

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/rank/feed"
	"github.com/affinityengine/affinity/shared/serve/ranker"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// draftWeight is how many bytes a draft takes from the process's gate for each byte of it:
// its values, and the forms in which it ranks.
const draftWeight = 8

// Timeout is how long a request may take, as Terraform has it.
const Timeout = time.Minute

type handler struct{ Backends }

// New returns the function over its backends.
func New(b Backends) http.Handler {
	h := handler{b}
	rt := b.Router(Timeout)
	rt.Count(limit.Jobs, "PUT /1/feeds/{name}")
	rt.HandleOwn("POST /1/rank", h.rank)
	rt.HandleOwn("POST /1/recommend", h.recommend)
	// The prefix is part of a client's host: a load balancer takes an asterisk of a path for any text, if at all.
	rt.Handle("POST /1/recommend/1/indexes/*/recommendations", h.recommendHits)
	boosts := auth.ServeBoth(h.Auth.TenantUserGrant, h.boosts, auth.Recommendation, auth.OwnUser)
	rt.HandleOwn("GET /1/boosts", boosts, boostOptions...)
	rt.HandleOwn("GET /1/boosts/{userToken}", boosts, boostOptions...)
	rt.Handle("GET /1/feeds/{name}/suggested", h.feedPage(feed.Suggested)) // the format says which options it takes
	rt.Handle("GET /1/feeds/{name}/latest", h.feedPage(feed.Latest))
	rt.AllowCredentials("GET /1/feeds/{name}/suggested", "GET /1/feeds/{name}/latest") // as clients of WordPress send
	h.registerDefinitions(rt)
	return rt
}

// admit returns the app and the grant of a request for an order, and its body of at most so many bytes.
func (h handler) admit(w http.ResponseWriter, r *http.Request, most int64) (config.App, auth.Grant, []byte, error) {
	app, grant, err := h.Auth.TenantAccessGrant(r)
	if err != nil {
		return app, grant, nil, err
	}
	body, err := httpapi.ReadBody(w, r, most)
	return app, grant, body, err
}

func (h handler) rank(w http.ResponseWriter, r *http.Request) error {
	began := time.Now()
	app, grant, body, err := h.admit(w, r, api.MaxRankBody)
	if err != nil {
		return err
	}
	in, err := decode(body, r.Header.Values(userHeader))
	if err != nil {
		return err
	}
	defer in.release()
	access, err := allowed(app, grant, in.Request, in.weighs)
	if err != nil {
		return err
	}
	if err := admission.Take(r.Context(), draftWeight*int64(in.draftBytes)); err != nil {
		return err
	}
	h.Usage.Reads(app.ID, 1)
	answer, err := h.Orderer.Order(r.Context(), app, in.Request)
	if err != nil {
		return fmt.Errorf("rank: %w", err)
	}
	id := cmp.Or(in.id, newID())
	return httpapi.WriteAppended(w, http.StatusOK, func(b []byte) ([]byte, error) {
		if access == auth.OrderOnly {
			return encodeOrder(b, id, answer.Items)
		}
		view := render(answer, in.Explain)
		view.ID, view.Took = id, time.Since(began).Milliseconds()
		return encode(b, view)
	})
}

// allowed says what of an order the key may see. weighs is the first option that the permission
// search alone may not give; empty: none.
func allowed(app config.App, grant auth.Grant, r ranker.Request, weighs string) (auth.Access, error) {
	access, err := grant.Access(app, r.User)
	if err = errors.Join(err, grant.Index(r.Index)); err != nil {
		return 0, err
	}
	if access == auth.OrderOnly && weighs != "" {
		return 0, fault.New(fault.Forbidden, "%s is not allowed with this API key: the permission search alone gets "+
			"the order of objects", weighs)
	}
	return access, nil
}

// newID returns the id of a request that has none.
func newID() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}
