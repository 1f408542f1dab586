package config_test

import (
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
)

func TestValidAppID(t *testing.T) {
	for id, want := range map[string]bool{
		"":                      false,
		"demo":                  true,
		"A-9_z":                 true,
		strings.Repeat("x", 64): true,
		strings.Repeat("x", 65): false,
		"a,b":                   false,
		"a b":                   false,
		"a\n":                   false,
		"é":                     false,
	} {
		if got := config.ValidAppID(id); got != want {
			t.Errorf("ValidAppID(%q) = %v, want %v", id, got, want)
		}
	}
}
