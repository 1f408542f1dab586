package api

// MaxExperimentBody is the size in bytes of the largest body of PUT /1/experiments/{name}.
const MaxExperimentBody = 16 << 10

// The states of an experiment.
const (
	ExperimentPlanned = "planned" // it begins at StartAt
	ExperimentRunning = "running"
	ExperimentEnded   = "ended" // it never goes on
)

// SetExperiment is the body of PUT /1/experiments/{name}: it begins an experiment, or changes one. The answer is the
// [Experiment].
type SetExperiment struct {
	// Arms are 2 to 10. The first is the control, with which a report compares the others.
	Arms []ExperimentArm `json:"arms"`
	// Coverage is the share of the users who take part, 0 to 1; absent: all.
	Coverage *float64 `json:"coverage,omitempty"`
	// Seed decides which arm each user is in; "": the name of the experiment.
	Seed string `json:"seed,omitempty"`
	// StartAt is when it begins; absent: now. EndAt is when it ends by itself; absent: it does not.
	StartAt *Time `json:"startAt,omitempty"`
	EndAt   *Time `json:"endAt,omitempty"`
	// Metric is what decides, per user: conversions, revenue or clicks.
	Metric string `json:"metric"`
	// Hypothesis is what its authors expect, in their words, up to 1,000 bytes.
	Hypothesis string `json:"hypothesis,omitempty"`
}

// ExperimentArm is a strategy that some users of an experiment get.
type ExperimentArm struct {
	Name string `json:"name"`
	// Strategy is its version. It scores as the active one does.
	Strategy int64 `json:"strategy"`
	// Weight is the share of those who take part. The weights of all arms add up to 1.
	Weight float64 `json:"weight"`
}

// Experiment divides users among strategies. An app has at most one that has not ended.
type Experiment struct {
	Name string `json:"name"`
	// State is ExperimentPlanned, ExperimentRunning or ExperimentEnded, by the engine's clock.
	State    string          `json:"state"`
	Arms     []ExperimentArm `json:"arms"`
	Coverage float64         `json:"coverage"`
	Seed     string          `json:"seed"`
	StartAt  Time            `json:"startAt"`
	EndAt    *Time           `json:"endAt,omitempty"`
	// StoppedAt is when a request stopped it. Absent: none has.
	StoppedAt *Time `json:"stoppedAt,omitempty"`
	// Promoted is the arm whose strategy was made the active one. Absent: none was.
	Promoted   string `json:"promoted,omitempty"`
	Metric     string `json:"metric"`
	Hypothesis string `json:"hypothesis,omitempty"`
}

// Experiments is the answer of GET /1/experiments: the newest 100, the one that began last first.
type Experiments struct {
	Experiments []Experiment `json:"experiments"`
}

// PromoteRequest is the body of POST /1/experiments/{name}/promote: the strategy of the arm becomes the active one, and
// the experiment ends. The answer is the [Experiment].
type PromoteRequest struct {
	Arm string `json:"arm"`
}

// InArm says which arm of an experiment the user of an answer is in.
type InArm struct {
	Name string `json:"name"` // of the experiment
	Arm  string `json:"arm"`
}
