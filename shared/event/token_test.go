package event_test

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/event"
)

// Ids that are no tokens become tokens, and a shell computes the same ones.
func TestHashedIDsAreTokens(t *testing.T) {
	for id, want := range map[string]string{
		"ann@example.com":            "cdT1X3L6Eo37RooaOQFQfIBLdDFkiHRNdp1_SxZpZHY",
		"auth0|5f7c":                 "Zi3QpZZa-i_EUjkZ92LB_Dn2mo78rO5Uzn1OzsDt_hc",
		"gid://shopify/Customer/1":   "",
		"us-east-1:0b1a":             "",
		"1234567890.1609459200":      "",
		"Zoë 'O`Neill' $HOME \\ % é": "",
	} {
		got := event.HashToken(id)
		if !event.ValidUserToken(got) || event.ValidUserToken(id) {
			t.Errorf("%q becomes %q", id, got)
		}
		if want != "" && got != want {
			t.Errorf("%q becomes %q, want %q", id, got, want)
		}
		shell := exec.Command("bash", "-c", `printf %s "$1" | openssl dgst -sha256 -binary | base64 | tr +/ -_ | tr -d =`, "", id)
		out, err := shell.Output()
		if errors.Is(err, exec.ErrNotFound) {
			t.Skip("bash is missing")
		}
		if err == nil && string(out) != got+"\n" {
			t.Errorf("%q: the shell says %s, want %s", id, out, got)
		}
	}
}

func TestInvalidTokenIsKnownByItsReason(t *testing.T) {
	for token, want := range map[string]bool{"ann@example.com": true, "": false} {
		_, err := event.Decode([]byte(`{"eventType":"view","eventName":"V","index":"i","filters":["a:b"],"userToken":"`+token+`"}`), event.Rules{Now: time.Now()})
		refusal, ok := errors.AsType[*event.Refusal](err)
		if !ok || event.InvalidToken(refusal.Message) != want {
			t.Errorf("%q: %v", token, err)
		}
	}
}
