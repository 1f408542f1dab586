package telemetry_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/affinityengine/affinity/shared/telemetry"
)

// A process that records no spans pays nothing for them, and passes on what others record.
func TestNothingIsRecordedByDefault(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	traced, w := telemetry.WithTrace(t.Context(), r.Header), httptest.NewRecorder()
	ctx, same, span := telemetry.StartRequest(traced, w, r)
	if ctx != traced || same != http.ResponseWriter(w) || span != nil || telemetry.Cause(ctx) != "" {
		t.Errorf("a span %v in %v, written by %T, the cause of %q", span, ctx, same, telemetry.Cause(ctx))
	}
	ctx, delivered := telemetry.StartDelivery(traced, "projects/p/subscriptions/s", 1, nil)
	if ctx != traced || delivered.IsRecording() {
		t.Errorf("a delivery is recorded in %v", ctx)
	}
	delivered.End()
	if id := telemetry.TraceID(ctx); id != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("the trace %q", id)
	}
	if id := telemetry.TraceID(context.Background()); id != "" {
		t.Errorf("the trace %q of none", id)
	}
}
