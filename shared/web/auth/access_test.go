package auth_test

import (
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// What a key sees of the user ann.
func TestAccess(t *testing.T) {
	f := newFamily(t)
	f.add(t, "shop", "public", config.Key{ACL: []string{auth.Search}})
	for text, acl := range map[string][]string{
		"page": {auth.Search}, "server": {auth.Recommendation}, "reader": {auth.ProfilesRead},
		"owner": {auth.Admin, auth.DeleteObject, auth.Settings, auth.Usage, auth.AddObject},
	} {
		if err := f.PutKey(t.Context(), "shop", config.Key{Hash: auth.Hash(text), ACL: acl}); err != nil {
			t.Fatal(err)
		}
	}
	for key, want := range map[string]struct {
		off, on   auth.Access
		offe, one error
	}{
		"page":   {0, auth.OrderOnly, auth.ErrForbidden, nil},
		"server": {auth.FullAccess, auth.FullAccess, nil, nil},
		"plain":  {auth.FullAccess, auth.FullAccess, nil, nil}, // which holds every permission
		"reader": {0, 0, auth.ErrForbidden, auth.ErrForbidden},
		"owner":  {0, 0, auth.ErrForbidden, auth.ErrForbidden},

		secure("public", "userToken=ann"):           {auth.FullAccess, auth.FullAccess, nil, nil},
		secure("public", "userToken=bob"):           {0, 0, auth.ErrUser, auth.ErrUser},
		secure("public", "restrictIndices=i"):       {0, auth.OrderOnly, auth.ErrForbidden, nil},
		secure("parent", "userToken=ann"):           {auth.FullAccess, auth.FullAccess, nil, nil},
		secure("parent", "userToken=bob"):           {0, 0, auth.ErrUser, auth.ErrUser},
		secure("parent", "validUntil=999999999999"): {auth.FullAccess, auth.FullAccess, nil, nil},
	} {
		for _, on := range []bool{false, true} {
			if err := f.SetBrowserRanking(t.Context(), "shop", on); err != nil {
				t.Fatal(err)
			}
			sight, wantErr := want.off, want.offe
			if on {
				sight, wantErr = want.on, want.one
			}
			r := httptest.NewRequest("POST", "/1/rank", nil)
			r.Header.Set("X-Algolia-Application-Id", "shop")
			r.Header.Set("X-Algolia-API-Key", key)
			app, g, err := f.authenticator(auth.Environment{}).TenantAccessGrant(r)
			var got auth.Access
			if err == nil {
				got, err = g.Access(app, "ann")
			}
			if got != sight || !errors.Is(err, wantErr) {
				t.Errorf("browser ranking %t: %.40s sees %d, %v; want %d, %v", on, key, got, err, sight, wantErr)
			}
		}
	}
}
