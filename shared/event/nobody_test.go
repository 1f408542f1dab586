package event_test

import (
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
)

func TestTokensThatNameNobody(t *testing.T) {
	for _, token := range []string{
		"undefined", "null", "NULL", "nil", "None", "NaN", "nan", "0", "000", "00000000-0000-0000-0000-000000000000", "-", "_", "0=",
		"true", "false", "anonymous", "Unknown", "not-set", "N/A", "not_authenticated",
	} {
		if !event.NamesNobody(token) {
			t.Errorf("%s is said to name a user", token)
		}
	}
	for _, token := range []string{
		"ann", "1", "10", "user-0", "undefined-1", "nullable", "anonymous-43b15df3-0533-4e82-97f0-ac0bdc5ebcaa", "00000000-0000-0000-0000-000000000001",
		strings.Repeat("n", 129),
	} {
		if event.NamesNobody(token) {
			t.Errorf("%s is said to name none", token)
		}
	}
}

func BenchmarkNamesNobody(b *testing.B) {
	for b.Loop() {
		event.NamesNobody("anonymous-43b15df3-0533-4e82-97f0-ac0bdc5ebcaa")
		event.NamesNobody("User-71")
	}
}
