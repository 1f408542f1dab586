// Package testmain runs the tests of packages that start servers in their own process and
// wait for them, for clocks and for other processes. It holds no data.
package testmain

import (
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"

	"github.com/affinityengine/affinity/shared/local/race"
)

// atOnce is how many parallel tests of a package run at a time. The race detector makes
// them so slow that they compete for the cores.
var atOnce = race.Or(8, 0)

// Main runs the tests of a package and returns the exit status. More parallel tests run at
// once than there are cores, unless -parallel says how many. Their servers keep all data in
// the heap, so it is collected less often, unless GOGC says how often or benchmarks run.
func Main(m *testing.M) int {
	flag.Parse()
	parallel := flag.Lookup("test.parallel").Value
	if cores := runtime.GOMAXPROCS(0); parallel.String() == strconv.Itoa(cores) {
		_ = parallel.Set(strconv.Itoa(max(cores, atOnce))) // which takes any number above 0
	}
	if os.Getenv("GOGC") == "" && flag.Lookup("test.bench").Value.String() == "" {
		debug.SetGCPercent(400)
	}
	return m.Run()
}
