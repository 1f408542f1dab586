package ingest_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/config"
	domain "github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// link has an app link tokens.
func link(t *testing.T, s *stack.Stack, app string, trustPages bool) {
	t.Helper()
	for _, mode := range []config.IdentityMode{config.IdentityCollect, config.IdentityLink} {
		_, err := s.Backends.CachedConfig.SetIdentity(t.Context(), app, config.Identity{Mode: mode, Lookback: time.Hour, TrustPages: trustPages}, 0)
		must.Succeed(t, err)
	}
}

// wantLinks checks the answer about a token: that it has all of some texts.
func wantLinks(t *testing.T, s *stack.Stack, token string, texts ...string) {
	t.Helper()
	must.Succeed(t, s.Idle(t.Context()))
	_, answer := functiontest.Call(profiles.New(s.Backends.ForProfiles()), "admin", "GET", "/1/identities/"+token, "")
	for _, text := range texts {
		if !strings.Contains(answer, text) {
			t.Errorf("%s: %s, want %s", token, answer, text)
		}
	}
}

const unlinked = `"role":"none","links":[]`

func identified(anonymous, user string) string {
	return fmt.Sprintf(`{"type":"identify","anonymousId":%q,"userId":%q,"messageId":"id-%s","timestamp":%q}`, anonymous, user, anonymous,
		time.Now().Format(time.RFC3339Nano))
}

// Calls that say who has signed in link tokens, if the key may say so. The event of a track call stays that of its
// userId.
func TestCallsLinkTokens(t *testing.T) {
	s, h := started(t)
	both := strings.Replace(viewed("ann", "1"), `{`, `{"anonymousId":"a-track","messageId":"t-1",`, 1)
	alias := `{"previousId":"a-alias","userId":"ann","messageId":"alias-1"}`
	page := `{"type":"page","anonymousId":"a-page","userId":"ann"}`
	calls := func(key string) {
		t.Helper()
		functiontest.Check(t, h,
			functiontest.Ask(key, "POST", "/v1/batch", batch(identified("a-identify", "ann"), both, both, page), 200, success),
			functiontest.Ask(key, "POST", "/v1/alias", alias, 200, success),
			functiontest.Ask(key, "POST", "/v1/identify", `{"anonymousId":17,"userId":"ann"}`, 200, success),
		)
	}
	tokens := []string{"ann", "a-identify", "a-track", "a-alias", "17"}
	calls("all")
	for _, token := range tokens {
		wantLinks(t, s, token, unlinked)
	}
	want := map[string]int64{"Ignored: identify call": 2, "Ignored: alias call": 1, "Ignored: page call": 1}
	if diff := cmp.Diff(want, counts(t, s)); diff != "" {
		t.Errorf("counts without identity (-want +got):\n%s", diff)
	}
	link(t, s, functiontest.App, false)
	calls("search") // that of a page
	for _, token := range tokens {
		wantLinks(t, s, token, unlinked)
	}
	calls("all")
	for token, by := range map[string]string{"a-identify": "id-a-identify", "a-track": "t-1", "a-alias": "alias-1"} {
		wantLinks(t, s, token, `"role":"anonymous"`, `"authenticatedUserToken":"ann"`, `"state":"open","strength":"strong","events":0,"by":"call","messageId":"`+by+`"`)
	}
	wantLinks(t, s, "17", `"state":"open","strength":"strong","events":0,"by":"call","key":"`)
	wantLinks(t, s, "ann", `"role":"known"`, `"userToken":"17"`, `"userToken":"a-identify"`, `"userToken":"a-track"`, `"userToken":"a-alias"`)
	wantLinks(t, s, "a-page", unlinked)
	want["Ignored: page call"] = 3
	if diff := cmp.Diff(want, counts(t, s)); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	p := profiles.New(s.Backends.ForProfiles())
	functiontest.Check(t, p, functiontest.Ask("recommendation", "GET", "/1/explain/ann", "", 200, `"accepted":1`),
		functiontest.Ask("recommendation", "GET", "/1/profiles/a-track", "", 404, ""))
}

// Ids are hashed in all places or in none, and what is no token is refused by name.
func TestTokensOfSignIns(t *testing.T) {
	s, h := started(t)
	must.Succeed(t, s.Backends.Config.PutKey(t.Context(), functiontest.App, config.Key{Hash: auth.Hash("hashing"), ACL: []string{auth.Search, auth.Recommendation}, HashTokens: true}))
	link(t, s, functiontest.App, false)
	old := strings.Replace(identified("a3", "ann"), time.Now().Format("2006"), "2020", 1)
	functiontest.Check(t, h,
		functiontest.Ask("hashing", "POST", "/v1/batch", batch(identified("a 1", "ann@shop.example")), 200, success),
		functiontest.Ask("hashing", "POST", "/v1/alias", `{"previousId":"a|2","userId":"ann@shop.example"}`, 200, success),
		functiontest.Ask("all", "POST", "/v1/batch", batch(identified("a1", "ann@shop.example"), old, identified("same", "same"),
			`{"type":"identify","userId":"ann"}`, `{"type":"alias","previousId":"a1"}`), 200, success),
	)
	wantLinks(t, s, domain.HashToken("ann@shop.example"), `"role":"known"`, `"userToken":"`+domain.HashToken("a 1")+`"`, `"userToken":"`+domain.HashToken("a|2")+`"`)
	for _, token := range []string{"a1", "a3", "same", "ann"} {
		wantLinks(t, s, token, unlinked)
	}
	want := map[string]int64{
		"The userId, anonymousId or previousId of the call is no user token, which has 1 to 129 of a-z, A-Z, 0-9 and _=/+-: send such tokens, or use a key that hashes ids (affinity app key add --hash-tokens)": 1,
		"The call is more than 30 days old, and links no tokens": 1, "Ignored: identify call": 2, "Ignored: alias call": 1,
	}
	if diff := cmp.Diff(want, counts(t, s)); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

// A secured key is for its own user: it says that this user has signed in, and of no other.
func TestSignInsOfSecuredKeys(t *testing.T) {
	s, h := started(t)
	link(t, s, functiontest.App, false)
	ann := client.SecuredKey("all", client.Secured{UserToken: "ann"})
	functiontest.Check(t, h,
		functiontest.Ask(ann, "POST", "/v1/batch", batch(identified("a1", "ann")), 200, success),
		functiontest.Ask(ann, "POST", "/v1/batch", batch(identified("a2", "victim")), 403, "User token not allowed with this API key"),
		functiontest.Ask(ann, "POST", "/v1/alias", `{"previousId":"victim","userId":"eve"}`, 403, "User token not allowed with this API key"),
	)
	wantLinks(t, s, "a1", `"strength":"strong"`)
	for _, token := range []string{"a2", "victim", "eve"} {
		wantLinks(t, s, token, unlinked)
	}
}

// In an app that links no tokens a secured key writes the events of its own user, and of no other token that an event names.
func TestSecuredKeysWithoutIdentity(t *testing.T) {
	s, h := started(t)
	ann := client.SecuredKey("all", client.Secured{UserToken: "ann"})
	of := `{"events":[{"eventType":"view","eventName":"Seen","index":"products","userToken":"victim","authenticatedUserToken":"ann","objectIDs":["1"]}]}`
	functiontest.Check(t, h, functiontest.Ask(ann, "POST", "/1/events", of, 403, "User token not allowed with this API key"))
	link(t, s, functiontest.App, false)
	functiontest.Check(t, h, functiontest.Ask(ann, "POST", "/1/events", of, 200, ""))
}

var anonymousID = regexp.MustCompile(`"anonymousId":"([^"]+)"`)

// What SDKs send from pages links the anonymous id of the page to the user, and the aliases of a user who is known
// already link nothing.
func TestSignInsOfPages(t *testing.T) {
	s, h := started(t)
	must.Succeed(t, s.Backends.Config.CreateApp(t.Context(), config.App{ID: "demo", RetentionDays: 90}))
	must.Succeed(t, s.Backends.Config.PutKey(t.Context(), "demo", config.Key{Hash: auth.Hash("pagekey"), ACL: []string{auth.Search}, Indexes: []string{"products"}}))
	must.Succeed(t, s.Backends.Config.PutKey(t.Context(), "demo", config.Key{Hash: auth.Hash("own"), ACL: []string{auth.Admin}}))
	link(t, s, "demo", true)
	for _, user := range []string{"segment-batch", "segment-batch-before", "rudder-batch"} {
		text, err := os.ReadFile("testdata/pages/" + user + ".http")
		must.Succeed(t, err)
		now := s.Backends.Now().UTC().Format("2006-01-02T15:04:05.000Z")
		recorded := sentAt.ReplaceAllString(string(text), now)
		token := anonymousID.FindStringSubmatch(recorded)[1]
		for in := bufio.NewReader(strings.NewReader(recorded)); ; {
			r, err := http.ReadRequest(in)
			if errors.Is(err, io.EOF) {
				break
			}
			must.Succeed(t, err)
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
		must.Succeed(t, s.Idle(t.Context()))
		p := profiles.New(s.Backends.ForProfiles())
		for asked, want := range map[string]string{
			token: `"authenticatedUserToken":"` + user + `"`, user: `"role":"known","links":[{"userToken":"` + token + `"`,
			"other": unlinked,
		} {
			r := functiontest.NewRequest("own", "GET", "/1/identities/"+asked, "")
			r.Header.Set("X-Algolia-Application-Id", "demo")
			w := httptest.NewRecorder()
			if p.ServeHTTP(w, r); !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %s: %s, want %s", user, asked, w.Body, want)
			}
		}
	}
}
