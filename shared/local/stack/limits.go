package stack

import (
	"runtime"

	"github.com/affinityengine/affinity/shared/limit"
)

// eventsPerCore is how many events per second an engine keeps up with on each core,
// beside the clients that send them from the same machine. `affinity bench lanes`
// measures it.
const eventsPerCore = 500

// Defaults are the limits of an app on a local engine. Its events share the cores of
// one machine with everything else, so the limit of events follows from them.
func Defaults() limit.Numbers {
	return limit.Numbers{EventsPerSecond: min(eventsPerCore*runtime.GOMAXPROCS(0), limit.Defaults.EventsPerSecond)}.Or(limit.Defaults)
}

func (o Options) limits() limit.Numbers { return o.Limits.Or(Defaults()) }
