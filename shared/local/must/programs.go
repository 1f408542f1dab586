package must

import (
	"os"
	"testing"
)

// Programs are the environment variables with which the tests run that start other programs. `go
// test ./...` starts none of them: their starts take most of its time, on some machines, and nothing on
// others. scripts/check sets the variable of each that is installed.
const (
	Builds    = "AFFINITY_REQUIRE_BUILDS"    // those of this module, which Go compiles with the flags of a release
	Browser   = "AFFINITY_REQUIRE_BROWSER"   // Chromium
	Clients   = "AFFINITY_REQUIRE_CLIENTS"   // Node, and what npm installs
	Emulators = "AFFINITY_REQUIRE_EMULATORS" // those of the Google Cloud CLI
	Lucene    = "AFFINITY_REQUIRE_LUCENE"    // Java and Lucene
	Postgres  = "AFFINITY_REQUIRE_POSTGRES"  // PostgreSQL
)

// Start skips the test unless the variable of the program that it starts is 1, and with -short. A test
// that goes on fails if the program is missing.
func Start(t testing.TB, variable string) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short starts no other program")
	}
	if os.Getenv(variable) != "1" {
		t.Skipf("starts another program: scripts/check runs this test, and so does %s=1", variable)
	}
}
