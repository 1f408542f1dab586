package config_test

import (
	"testing"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/config/configtest"
)

func TestMemory(t *testing.T) {
	configtest.Run(t, func(*testing.T) config.Store { return config.NewMemory() })
}

func TestCachedMemory(t *testing.T) {
	configtest.Run(t, func(*testing.T) config.Store { return configtest.Cached(config.NewMemory()) })
}
