package api_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/audit"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// TestLimitsOfTheEngine compares limits with those that the engine applies. The
// packages of the engine do not import this one, so that a change of an answer
// does not deploy the functions that have no public route.
func TestLimitsOfTheEngine(t *testing.T) {
	for name, limit := range map[string]struct{ api, engine int }{
		"MaxAuditSample":   {api.MaxAuditSample, audit.MaxSample},
		"MaxAuditReport":   {api.MaxAuditReport, audit.MaxDifferences},
		"MaxFaults":        {api.MaxFaults, job.MaxFaults},
		"MaxRefusedEvents": {api.MaxRefusedEvents, store.MaxRefused},
		"MaxRefusedDays":   {api.MaxRefusedDays, store.RefusedDays},
	} {
		if limit.api != limit.engine {
			t.Errorf("%s is %d, the engine's limit is %d", name, limit.api, limit.engine)
		}
	}
}

// httpapi writes a Message, for the same reason without this package.
func TestMessageOfTheEngine(t *testing.T) {
	want, err := json.Marshal(api.Message{Status: 200, Message: "OK"})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	if err := httpapi.WriteMessage(w, 200, "OK"); err != nil || strings.TrimSpace(w.Body.String()) != string(want) {
		t.Errorf("httpapi writes %s, %v; want %s", w.Body, err, want)
	}
}
