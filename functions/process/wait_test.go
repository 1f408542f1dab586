package process_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/affinityengine/affinity/functions/process"
	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/local/functiontest"
)

// A delivery that is not light waits for memory longer than a client of the API would.
func TestDeliveryWaitsForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other, leave := admission.Process().Enter(t.Context())
		if err := admission.Take(other, 1<<40); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(30*time.Second, leave)
		began := time.Now()
		// It is not a push, so it needs no backends once it is read.
		code, answer := functiontest.Call(process.New(process.Backends{}), "", "POST", "/", `{"subscription":"s"}`+strings.Repeat(" ", admission.Light))
		if waited := time.Since(began); code != http.StatusBadRequest || waited != 30*time.Second {
			t.Errorf("%d %s after %v; want 400 after 30 s", code, answer, waited)
		}
	})
}
