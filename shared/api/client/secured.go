package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Secured is what restricts a secured key, beside the restrictions of its parent. Empty
// fields restrict nothing.
type Secured struct {
	// UserToken is the only user.
	UserToken string
	// ValidUntil is when the key ends, to the second.
	ValidUntil time.Time
	// Indexes are the only indexes; a * in one stands for any characters.
	Indexes []string
	// Sources are the only addresses and networks of callers, such as 192.0.2.0/24.
	Sources []string
}

// SecuredKey makes a key of the text of another one, the parent, without a call. It is for
// programs that the parent must not reach, such as a web page. The engine checks what s holds
// when the key is used.
func SecuredKey(parent string, s Secured) string {
	parameters := url.Values{}
	for name, value := range map[string]string{
		"userToken": s.UserToken, "restrictIndices": strings.Join(s.Indexes, ","),
		"restrictSources": strings.Join(s.Sources, ","),
	} {
		if value != "" {
			parameters.Set(name, value)
		}
	}
	if !s.ValidUntil.IsZero() {
		parameters.Set("validUntil", strconv.FormatInt(s.ValidUntil.Unix(), 10))
	}
	text := parameters.Encode()
	mac := hmac.New(sha256.New, []byte(parent))
	_, _ = mac.Write([]byte(text)) // never fails
	return base64.StdEncoding.EncodeToString([]byte(hex.EncodeToString(mac.Sum(nil)) + text))
}
