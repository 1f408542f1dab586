package config_test

import (
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/configtest"
)

func TestMemory(t *testing.T) {
	configtest.Run(t, func(*testing.T) *config.Store { return config.NewMemory() })
}

// Every change of a stored configuration passes through its record.
func TestStored(t *testing.T) {
	configtest.Run(t, func(t *testing.T) *config.Store { return openStored(t, configtest.Records{}, configtest.Records{}) })
}

func TestCachedMemory(t *testing.T) {
	configtest.RunCached(t, func(*testing.T) *config.Store { return config.NewMemory() })
}
