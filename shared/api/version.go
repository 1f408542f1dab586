package api

// Version is the version of the engine, its API and its command line tool, by
// the rules of semantic versioning and without a leading "v". It is the only
// place that states the version. A pre-release such as 0.1.0-dev is what leads
// to the release of that number.
const Version = "0.1.0-dev"

// Health is the answer of GET /healthz.
type Health struct {
	Status  int    `json:"status"`
	Message string `json:"message"`
	Version string `json:"version"`
}
