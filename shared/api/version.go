package api

import "runtime/debug"

// Version is the version of the engine, its API and its command line tool, by
// the rules of semantic versioning and without a leading "v". It is the only
// place that states the version. A pre-release such as 0.1.0-dev is what leads
// to the release of that number.
const Version = "0.1.0-dev"

// ReleaseHeader is the header by which the load balancer says the release of a deployment:
// to functions, which do not know it, and to clients.
const ReleaseHeader = "X-Affinity-Release"

// Health is the answer of GET /health.
type Health struct {
	Status  int    `json:"status"`
	Message string `json:"message"`
	Version string `json:"version"`
	// Release is the commit that answers, as Release writes it; "" if it is not known.
	Release string `json:"release,omitempty"`
}

// Release returns the commit that a program was built from, with "-dirty" if its sources
// differed from it; "" if the build recorded none. Functions record none, and have
// ReleaseHeader.
func Release(info *debug.BuildInfo) string {
	commit, dirty := "", ""
	if info != nil {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				commit = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				dirty = "-dirty"
			}
		}
	}
	if commit == "" {
		return ""
	}
	return commit + dirty
}
