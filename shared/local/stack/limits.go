package stack

import (
	"runtime"

	"github.com/affinityengine/affinity/shared/app/limit"
)

// eventsPerCore is how many events per second an engine keeps up with on each core,
// beside the clients that send them from the same machine: at 2,000 a second, sent
// singly, of users with some 20 each, 99 in 100 events count within 0.4 s on two cores
// (`affinity load --rate 2000 --reads 0 --for 12s`, 2026-11-23).
const eventsPerCore = 1000

// defaults are the limits of an app on a local engine. Its events share the cores of
// one machine with everything else, so the limit of events follows from them.
func defaults() limit.Numbers {
	return limit.Numbers{EventsPerSecond: min(eventsPerCore*runtime.GOMAXPROCS(0),
		limit.Defaults.EventsPerSecond)}.Or(limit.Defaults)
}

func (o Options) limits() limit.Numbers { return o.Limits.Or(defaults()) }
