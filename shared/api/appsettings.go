package api

// Limits of GET /1/app.
const (
	// DefaultKeys is how many keys a page has if the request does not say.
	DefaultKeys = 100
	// MaxKeys is how many keys a page has at most.
	MaxKeys = 1_000
)

// AppSettingsQuery are the query parameters of GET /1/app.
type AppSettingsQuery struct {
	// Limit is how many keys to list, 1 to MaxKeys. 0 stands for DefaultKeys.
	Limit int
	// Cursor is that of the page before. "": the first page.
	Cursor string
}

// AppSettings is the answer of GET /1/app: an app as its operator has set it up, and its
// keys. No route changes what is here, but for the strategy and
// TrackNames.
type AppSettings struct {
	ID        string `json:"id"`
	CreatedAt Time   `json:"createdAt"`
	// Region is where the app lives. Absent in a deployment without regions.
	Region string `json:"region,omitempty"`
	// MovingTo is the region to which the app moves now. Absent if it moves to none.
	MovingTo string `json:"movingTo,omitempty"`
	// Isolated is whether the app has Bigtable tables of its own.
	Isolated bool `json:"isolated"`
	// Dedicated is whether the app's events and jobs have queues and processes of their own.
	Dedicated bool `json:"dedicated"`
	// RetentionDays is for how many days an event counts; 0 is for ever.
	RetentionDays int `json:"retentionDays"`
	// Consistency is how reads of profiles see replicas unless a request says otherwise:
	// "eventual" or "strong".
	Consistency string `json:"consistency"`
	// BrowserRanking is whether keys with the permission search, which stand in web pages, may
	// ask for the order of objects for a user.
	BrowserRanking bool `json:"browserRanking"`
	// Segments is whether users can be found by their affinities.
	Segments bool `json:"segments"`
	// Identity is whether the tokens of one person are linked.
	Identity AppIdentity `json:"identity"`
	// Residency says where users live; absent if they all live in the region of the app.
	Residency *AppResidency `json:"residency,omitempty"`
	// Purposes are what the app uses events for; absent if there are none: all events count.
	Purposes []AppPurpose `json:"purposes,omitempty"`
	// Holdout says which users get no personalization; absent if all do.
	Holdout *AppHoldout `json:"holdout,omitempty"`
	// Experiment is the name of the experiment that runs; absent if none does.
	Experiment string `json:"experiment,omitempty"`
	// TrackNames are the types of events that the app has given names of track calls; absent
	// if there are none.
	TrackNames map[string]string `json:"trackNames,omitempty"`
	// StrategyVersion is the version of the active strategy, 0 until one is set.
	StrategyVersion int64 `json:"strategyVersion"`
	// Limits are those in force.
	Limits AppLimits `json:"limits"`
	// OwnLimits names those of Limits that are set for this app. The others are the
	// deployment's defaults.
	OwnLimits []string `json:"ownLimits"`
	// Keys are sorted by name, those of one name with the newest first.
	Keys []AppKey `json:"keys"`
	// Cursor leads to the next page of keys; absent on the last one.
	Cursor string `json:"cursor,omitempty"`
}

// AppIdentity says whether the events of an anonymous token count for the user who has signed in under it.
type AppIdentity struct {
	// Mode is "off", "collect" where links are made and do not count yet, or "link".
	Mode string `json:"mode"`
	// Lookback is how long before a sign-in the events of the anonymous token count, such as "30d" or "12h".
	Lookback string `json:"lookback"`
	// Trust is whose evidence links: "server", or "pages" for that of keys in web pages, too.
	Trust string `json:"trust"`
	// Serve is whose order a page gets that knows an anonymous token: that of the "token", or, where evidence is
	// strong, of the "person" who has signed in under it.
	Serve string `json:"serve"`
}

// AppPurpose is what an app uses events for, if the user grants it.
type AppPurpose struct {
	Name string `json:"name"`
	// Default says whether users grant it who were never asked.
	Default bool `json:"default"`
	// Types, Names and Facets of events serve the purpose. An absent list means all.
	Types  []string `json:"types,omitempty"`
	Names  []string `json:"names,omitempty"`
	Facets []string `json:"facets,omitempty"`
	// Signals are names by which the consent of an event speaks of the purpose, beside Name.
	Signals []string `json:"signals,omitempty"`
	// Surfaces are where the app uses what was kept for the purpose; absent for nowhere.
	Surfaces []string `json:"surfaces,omitempty"`
}

// AppHoldout says which users of an app get no personalization, so that the others can be compared with them.
type AppHoldout struct {
	// Share is that of the users, from 0 to 0.2.
	Share float64 `json:"share"`
	// Seed decides who they are.
	Seed string `json:"seed"`
}

// AppResidency says in which regions the users of an app live.
type AppResidency struct {
	// Mode is "prepare" where each user has a location, which is still the region of the app, or "on".
	Mode string `json:"mode"`
	// Regions are those in which users may live, and Home is that of the app.
	Regions []string `json:"regions"`
	Home    string   `json:"home"`
	// Rule is what names the region in which a user begins: the "app", the "key" that sends the first event, or a
	// "header".
	Rule string `json:"rule"`
	// Header names the country of a client, and Countries has the regions of countries; for the rule "header".
	Header    string            `json:"header,omitempty"`
	Countries map[string]string `json:"countries,omitempty"`
	// Leave has the regions that users leave now, each with the one to which they move.
	Leave map[string]string `json:"leave,omitempty"`
}

// AppLimits are what an app may send and ask for.
type AppLimits struct {
	// EventsPerSecond go to the slow lane beyond it, and are refused beyond twice as many.
	EventsPerSecond int `json:"eventsPerSecond"`
	// ImportsPerSecond is how many events may be imported per second.
	ImportsPerSecond int `json:"importsPerSecond"`
	// ReadsPerSecond counts requests of all other routes, and each user of a batch.
	ReadsPerSecond int `json:"readsPerSecond"`
	// JobsPerHour is how many jobs may be started per hour.
	JobsPerHour int `json:"jobsPerHour"`
	// StrategiesPerHour is how often the strategy may be set per hour.
	StrategiesPerHour int `json:"strategiesPerHour"`
	// UserEventsPerDay is how many events of one user count per day, in UTC.
	UserEventsPerDay int `json:"userEventsPerDay"`
	// WriteWindowMs is how many milliseconds the events of a user wait for one write of
	// their profile; 0: they do not wait. Reads count them at once.
	WriteWindowMs int `json:"writeWindowMs"`
}

// AppKey is a key of an app. Nothing here opens anything.
type AppKey struct {
	// ID is the first 12 digits of the key's SHA-256 in hexadecimal. The audit log and the
	// operator's commands name a key by it.
	ID string `json:"id"`
	// Name is absent if the key has none. Keys that replace one another have one name.
	Name string `json:"name,omitempty"`
	// Description is a text for people; absent if there is none.
	Description string `json:"description,omitempty"`
	// ACL are the permissions of the key.
	ACL       []string `json:"acl"`
	CreatedAt Time     `json:"createdAt"`
	// ValidUntil is when the key ends or has ended. Absent: it does not end.
	ValidUntil *Time `json:"validUntil,omitempty"`
	// Indexes are the indexes that the key is for, as patterns with *. Empty: all.
	Indexes []string `json:"indexes"`
	// Referers are the pages that the key is for, as patterns with *. Empty: all, and servers.
	Referers []string `json:"referers"`
	// AddressRate is how many requests a minute one address may send with the key; 0 is
	// without a limit.
	AddressRate int `json:"addressRate"`
	// HashTokens is whether a hash takes the place of each id of a user in the calls of SDKs
	// that come with the key.
	HashTokens bool `json:"hashTokens"`
	// Region is where users begin whose first event comes with the key; absent if it names none.
	Region string `json:"region,omitempty"`
	// Parent is whether secured keys can be made of the key.
	Parent bool `json:"parent"`
	// Current is whether this request was made with the key.
	Current bool `json:"current"`
}
