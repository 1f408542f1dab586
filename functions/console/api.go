package console

import (
	"net/http"

	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// API are the public functions that answer with JSON.
type API struct {
	Ingest, Imports, Profiles, Rank, Strategies, Catalog, Admin, Segments http.Handler
}

// Routes returns the paths of the functions, as the load balancer has them.
func (a API) Routes() httpapi.Prefixes {
	return httpapi.Prefixes{
		{Prefix: "/1/events/import", Handler: a.Imports},
		{Prefix: "/1/events/recent", Handler: a.Profiles},
		{Prefix: "/1/events", Handler: a.Ingest},
		{Prefix: "/v1", Handler: a.Ingest},
		{Prefix: "/beacon", Handler: a.Ingest},
		{Prefix: "/1/profiles", Handler: a.Profiles},
		{Prefix: "/1/usertokens", Handler: a.Profiles},
		{Prefix: "/1/explain", Handler: a.Profiles},
		{Prefix: "/1/optouts", Handler: a.Profiles},
		{Prefix: "/1/consents", Handler: a.Profiles},
		{Prefix: "/1/users", Handler: a.Profiles},
		{Prefix: "/1/identities/preview", Handler: a.Admin},
		{Prefix: "/1/identities", Handler: a.Profiles},
		{Prefix: "/1/rank", Handler: a.Rank},
		{Prefix: "/1/recommend", Handler: a.Rank},
		{Prefix: "/1/boosts", Handler: a.Rank},
		{Prefix: "/1/feeds", Handler: a.Rank},
		{Prefix: "/1/strategies", Handler: a.Strategies},
		{Prefix: "/1/indexes", Handler: a.Catalog},
		{Prefix: "/1/track-names", Handler: a.Catalog},
		{Prefix: "/1/recomputes", Handler: a.Admin},
		{Prefix: "/1/imports", Handler: a.Admin},
		{Prefix: "/1/reenrich", Handler: a.Admin},
		{Prefix: "/1/export", Handler: a.Admin},
		{Prefix: "/1/dump", Handler: a.Admin},
		{Prefix: "/1/audit-log", Handler: a.Admin},
		{Prefix: "/1/usage", Handler: a.Admin},
		{Prefix: "/1/app", Handler: a.Admin},
		{Prefix: "/1/crowd", Handler: a.Admin},
		{Prefix: "/1/segments", Handler: a.Segments},
		{Prefix: "/1/values", Handler: a.Segments},
		{Prefix: "/1/backtests", Handler: a.Admin},
		{Prefix: "/1/experiments", Handler: a.Admin},
		{Prefix: "/1/reports", Handler: a.Admin},
		{Prefix: "/1/schema", Handler: a.Admin},
		{Prefix: "/1/audits", Handler: a.Admin},
	}
}
