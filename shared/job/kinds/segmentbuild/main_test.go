package segmentbuild_test

import (
	"testing"

	"github.com/affinityengine/affinity/shared/local/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }
