package audit_test

import (
	"errors"
	"testing"

	"github.com/affinityengine/affinity/shared/admission"
)

// An audit takes the memory of the profiles from the gate of the process, and gives it
// back after each batch.
func TestAuditWaitsForMemory(t *testing.T) {
	b := newBench(t)
	b.apply(bought("anna", b.clock-day, "Red", "Acme"))
	gate := admission.NewGate(10_000)
	other, leave := gate.EnterFor(t.Context(), 0)
	if err := admission.Take(other, 10_000); err != nil {
		t.Fatal(err)
	}
	audited, leaveAudit := gate.EnterFor(t.Context(), 0)
	defer leaveAudit()
	if _, err := b.audit.Run(audited, b.app(), []string{"anna"}); !errors.Is(err, admission.ErrFull) {
		t.Errorf("an audit without memory: %v", err)
	}
	leave()
	if r, err := b.audit.Run(audited, b.app(), []string{"anna"}); err != nil || r.Compared != 1 {
		t.Errorf("an audit with memory: %+v, %v", r, err)
	}
	other, leave = gate.EnterFor(t.Context(), 0)
	defer leave()
	if err := admission.Take(other, 10_000); err != nil {
		t.Errorf("the audit still holds memory: %v", err)
	}
}
