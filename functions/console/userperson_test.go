package console_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/config"
)

// The pages of a known user say which events are of another token.
func TestUserWithLinkedToken(t *testing.T) {
	t.Parallel()
	u := newUsersSite(t)
	u.must(u.engine.Strategies().SetJSON(t.Context(), json.RawMessage(usersStrategy), client.SetOptions{}))
	for _, mode := range []config.IdentityMode{config.IdentityCollect, config.IdentityLink} {
		_, err := u.stack.Backends.CachedConfig.SetIdentity(t.Context(), "shop", config.Identity{Mode: mode, Lookback: 30 * 24 * time.Hour}, 0)
		u.must(err)
	}
	u.did("visitor", "view", "Product Viewed", 2*hour, "color:Blue")
	u.did("ann", "view", "Product Viewed", hour, "color:Blue")
	u.idle()
	_, err := u.engine.Profiles().Link(t.Context(), api.LinkRequest{UserToken: "visitor", AuthenticatedUserToken: "ann"})
	u.must(err)
	by := `<span class="hint">by <bdi>visitor</bdi></span>`
	u.inOrder(u.get(200, "/console/users/ann/why?facet=color&value=Blue"), "2 events add up to", by)
	u.inOrder(u.get(200, "/console/users/ann/events"), "2 events, the newest first", by)
	u.lacks(u.get(200, "/console/users/visitor/events"), by)
}
