package auth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/fault"
)

// A secured key is a key that an app's server makes of a parent without a call,
// for one user or for a time: base64 of the hex HMAC-SHA256 of its parameters
// under the parent's text, followed by the parameters, which are a URL query. The
// format is that of Algolia's clients. With the text of a parent anybody can make
// every secured key, so a parent never belongs into a web page.

const (
	// MaxSecured is the length of the longest secured key, in bytes.
	MaxSecured = 4_096
	macLength  = 2 * sha256.Size // in hex
)

var (
	// ErrSecured says that a route takes no secured keys.
	ErrSecured error = fault.New(fault.Forbidden,
		"Secured API keys are not accepted by this route, or this deployment has no parents of secured keys")
	// ErrUser says that the secured key is for another user.
	ErrUser error = fault.New(fault.Forbidden, "User token not allowed with this API key")
	// ErrAnyUser says that the secured key is for one user, and the route for all.
	ErrAnyUser error = fault.New(fault.Forbidden,
		"This API key is restricted to a user, and the request is not about this user alone")
	// ErrSource says that the secured key is for other addresses.
	ErrSource error = fault.New(fault.Forbidden, "Source address not allowed with this API key")
)

// OwnUser is the permission of a secured key over what concerns its user alone, if the
// parent holds Search. No ACL can name it.
const OwnUser = "own user"

// ParentPermissions are the permissions that the parent of secured keys may hold: those of
// the routes that take secured keys.
var ParentPermissions = []string{Search, Recommendation, ProfilesRead}

// secured is a secured key, taken apart.
type secured struct{ mac, parameters string }

// parseSecured reports whether a key has the form of a secured key. No other key
// of the engine has it: a plain key would need 88 characters, the right ones.
func parseSecured(key string) (secured, bool) {
	short := len(key) < base64.RawStdEncoding.EncodedLen(macLength)
	if short || len(key) > MaxSecured || strings.ContainsAny(key, "\r\n") { // which a decoder would skip
		return secured{}, false
	}
	text, err := base64.RawStdEncoding.Strict().DecodeString(strings.TrimRight(key, "="))
	if err != nil || len(text) < macLength {
		return secured{}, false
	}
	s := secured{string(text[:macLength]), string(text[macLength:])}
	if strings.Trim(s.mac, "0123456789abcdef") != "" {
		return secured{}, false
	}
	return s, true
}

// signedBy reports whether the key was made of a parent, in constant time.
func (s secured) signedBy(parent []byte) bool {
	mac := hmac.New(sha256.New, parent)
	mac.Write([]byte(s.parameters))
	return hmac.Equal([]byte(hex.EncodeToString(mac.Sum(nil))), []byte(s.mac))
}

// checkSecured is Check for a secured key.
func (a *Authenticator) checkSecured(ctx context.Context, r Request, s secured, anyOf []string) (Grant, error) {
	if !a.config.ReadsParents() {
		return Grant{}, ErrSecured
	}
	parents, err := a.config.Parents(ctx, r.App)
	if err != nil {
		return Grant{}, credentials(fmt.Errorf("look up the parents of app %q: %w", r.App, err))
	}
	now := time.Now()
	signer := -1
	var damaged error
	for i, p := range parents {
		if p.Err != nil {
			damaged = p.Err
		} else if s.signedBy(p.Text) {
			signer = i
		}
	}
	switch {
	case signer >= 0 && parents[signer].Ended(now):
		return Grant{}, ErrCredentials
	case signer >= 0:
	case damaged != nil:
		return Grant{}, fmt.Errorf("check a secured key of app %q: %w", r.App, damaged)
	default:
		return Grant{}, ErrCredentials
	}
	only, err := parseRestrictions(s.parameters)
	if err != nil {
		return Grant{}, err
	}
	if only.timed && now.Unix() >= only.until {
		return Grant{}, fault.New(fault.Unauthenticated,
			"Invalid credentials: the validity of this secured API key has ended")
	}
	if len(only.sources) > 0 {
		address := r.address(a.env.Forwarded)
		if !slices.ContainsFunc(only.sources, func(p netip.Prefix) bool { return p.Contains(address) }) {
			return Grant{}, ErrSource
		}
	}
	return a.permit(r, now, parents[signer].Key, only, anyOf)
}

// restrictions are what a secured key adds to those of its parent. The zero value
// adds nothing.
type restrictions struct {
	user    string
	timed   bool
	until   int64 // seconds since 1970, if timed
	indexes []string
	sources []netip.Prefix
}

// parseRestrictions returns the restrictions that a secured key's parameters hold.
// It refuses those that the engine does not enforce, and ignores parameters of
// searches, which restrict nothing here.
func parseRestrictions(parameters string) (restrictions, error) {
	var only restrictions
	query, err := url.ParseQuery(parameters)
	if err != nil {
		return only, fault.New(fault.Forbidden, "The parameters of this secured API key are malformed")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if searchParameters[name] {
			continue
		}
		ok := len(query[name]) == 1 && query[name][0] != ""
		value := query[name][0]
		switch name {
		case "userToken":
			only.user = value
		case "validUntil":
			only.timed = true
			only.until, err = strconv.ParseInt(value, 10, 64)
			ok = ok && err == nil
		case "restrictIndices":
			only.indexes, err = list(value)
			ok = ok && err == nil
		case "restrictSources":
			only.sources, err = networks(value)
			ok = ok && err == nil
		default:
			return only, fault.New(fault.Forbidden, "The restriction %.100q of this secured API key is not supported", name)
		}
		if !ok {
			return only, fault.New(fault.Forbidden, "The restriction %s of this secured API key is malformed", name)
		}
	}
	return only, nil
}

// list decodes a list as the clients write it: joined by commas, or as JSON.
func list(text string) ([]string, error) {
	items := strings.Split(text, ",")
	if strings.HasPrefix(text, "[") {
		items = nil
		if err := json.Unmarshal([]byte(text), &items); err != nil {
			return nil, err
		}
	}
	if len(items) == 0 || slices.Contains(items, "") {
		return nil, fmt.Errorf("%q: an item is empty", text)
	}
	return items, nil
}

// networks decodes a list of addresses and networks, such as 192.0.2.0/24.
func networks(text string) ([]netip.Prefix, error) {
	items, err := list(text)
	if err != nil {
		return nil, err
	}
	var all []netip.Prefix
	for _, item := range items {
		network, err := netip.ParsePrefix(item)
		if err != nil {
			address, err := netip.ParseAddr(item)
			if err != nil {
				return nil, err
			}
			network = netip.PrefixFrom(address, address.BitLen())
		}
		all = append(all, network)
	}
	return all, nil
}
