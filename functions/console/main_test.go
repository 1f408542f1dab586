package console_test

import (
	"os"
	"testing"

	"github.com/affinityengine/affinity/shared/local/testmain"
)

func TestMain(m *testing.M) { os.Exit(testmain.Main(m)) }
