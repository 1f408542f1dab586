package console_test

import (
	"os"
	"testing"

	"github.com/affinityengine/affinity/shared/local/chromium"
	"github.com/affinityengine/affinity/shared/local/testmain"
)

func TestMain(m *testing.M) { os.Exit(chromium.Share(func() int { return testmain.Main(m) })) }
