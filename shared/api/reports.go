package api

// HoldoutExperiment is the name under which the holdout of an app is reported: its arms are holdout, the control, and
// personalized.
const HoldoutExperiment = "holdout"

// ReportRequest is the body of POST /1/reports.
type ReportRequest struct {
	// Experiment is the name of the app's experiment, or HoldoutExperiment.
	Experiment string `json:"experiment"`
	// From and To are the first and the last day in UTC, such as 2026-11-30; "": all days that are over.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Currency of revenue; "": the one in which most people paid.
	Currency string `json:"currency,omitempty"`
}

// Reports is the answer of GET /1/reports: the latest, the newest first, at most MaxJobsListed.
type Reports struct {
	Reports []ReportJob `json:"reports"`
}

// ReportJob is a job that makes a report of an experiment from the log: the answer of POST /1/reports, GET
// /1/reports/{id} and POST /1/reports/{id}/cancel. What it has found is the answer of GET
// /1/experiments/{name}/report.
type ReportJob struct {
	ID         string   `json:"id"`
	State      JobState `json:"state"`
	Experiment string   `json:"experiment"`
	// Month is that of a report of a month, such as 2026-11. Absent: it is one of other days.
	Month string `json:"month,omitempty"`
	From  string `json:"from"`
	To    string `json:"to"`
	// Users and Events count what was read so far, PlannedUsers the users of the app.
	Users        int64 `json:"users"`
	PlannedUsers int64 `json:"plannedUsers"`
	Events       int64 `json:"events"`
	StartedAt    Time  `json:"startedAt"`
	// FinishedAt is null until the job has ended.
	FinishedAt *Time `json:"finishedAt"`
	Place
	// Faulty counts users and rows of the log that could not be read. Faults names the first, at most MaxFaults, with the
	// reason; only GET /1/reports/{id} has it.
	Faulty int64    `json:"faulty,omitempty"`
	Faults []string `json:"faults,omitempty"`
	// Error is why the job failed.
	Error string `json:"error,omitempty"`
}

// ExperimentReportQuery are the options of GET /1/experiments/{name}/report. The zero value asks for the latest report
// of the metric that decides.
type ExperimentReportQuery struct {
	Metric     string // clicks, conversions or revenue
	From, To   string // the days that the report must have
	Month      string // the report of a month, such as 2026-11
	Population string // "active", which is what "" means, or "exposed"
}

// ExperimentReport is what the arms of an experiment have shown. It follows from the log of events alone.
type ExperimentReport struct {
	Experiment string `json:"experiment"`
	From       string `json:"from"`
	To         string `json:"to"` // the last day
	Metric     string `json:"metric"`
	// Currency is that of revenue per user. Absent of other metrics, and if no event named one.
	Currency   string `json:"currency,omitempty"`
	Population string `json:"population"`
	People     int64  `json:"people"` // of all arms, each once
	// Crossed counts the people whom another arm has answered too, and those without an answer who have a token of
	// another arm.
	Crossed int64       `json:"crossed"`
	Days    int         `json:"days"`
	Arms    []ReportArm `json:"arms"`
	// Lift compares each arm with the control.
	Lift []ReportLift `json:"lift"`
	// Series is the lift as of the end of some days, of the last one as in Lift.
	Series      []ReportPoint `json:"series"`
	SampleRatio SampleRatio   `json:"sampleRatio"`
	Power       ReportPower   `json:"power"`
	Bound       *ReportBound  `json:"bound"` // null if nobody's amount is beyond it
	Words       string        `json:"words"`
	// AsOf is the instant at which the log was read, Job the job that did, and Definition a hash of what said who was in
	// which arm.
	AsOf       Time   `json:"asOf"`
	Job        string `json:"job"`
	Definition string `json:"definition"`
	// Months are those of which the engine keeps a report, such as 2026-11, the newest first.
	Months []string `json:"months"`
}

// ReportArm is what the people of an arm did.
type ReportArm struct {
	Name        string             `json:"name"`
	Users       int64              `json:"users"`
	Expected    float64            `json:"expected"` // users by the weights
	Exposed     int64              `json:"exposed"`  // users for whom an arm has answered
	Clicks      int64              `json:"clicks"`
	Conversions int64              `json:"conversions"`
	Revenue     map[string]float64 `json:"revenue"` // by currency
	PerUser     float64            `json:"perUser"` // of the metric, neither bounded nor adjusted
	Attributed  ReportAttributed   `json:"attributed"`
}

// ReportAttributed is what the people of an arm bought after an answer: of conversions with the queryID of one.
type ReportAttributed struct {
	Conversions int64              `json:"conversions"`
	Revenue     map[string]float64 `json:"revenue"` // by currency
	// Position is the mean of where the objects stood in the answers, from 1, by the last click on one of them with the
	// same queryID; null if there is none. Positioned counts the conversions with such a click.
	Position   *float64 `json:"position"`
	Positioned int64    `json:"positioned"`
}

// ReportLift compares an arm with the control.
type ReportLift struct {
	Arm    string `json:"arm"`
	Over   string `json:"over"` // the control
	Metric string `json:"metric"`
	// Relative is 0.03 if the arm has 3 % more per user; null if one of the means is not above 0.
	Relative *float64 `json:"relative"`
	// Low and High are the ends of the always-valid 95 % interval, null before each arm has 100 people with an amount.
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
	// Decided: the interval leaves out 0, and the sample ratio is right.
	Decided bool `json:"decided"`
	// Explained is the share of the variance that the weeks before the experiment have taken away.
	Explained float64 `json:"explained"`
}

// ReportPoint is the lift of an arm as of the end of a day. All but the last do without the weeks before.
type ReportPoint struct {
	Day      string   `json:"day"`
	Arm      string   `json:"arm"`
	Relative *float64 `json:"relative"`
	Low      *float64 `json:"low"`
	High     *float64 `json:"high"`
}

// SampleRatio says whether the arms have the people that their weights give.
type SampleRatio struct {
	P  float64 `json:"p"`  // the chance of arms as uneven as these
	OK bool    `json:"ok"` // P is at least 0.001
}

// ReportPower says how many more days a difference of For would take to show, in four of five cases; null if nobody
// can say.
type ReportPower struct {
	Days *int    `json:"days"`
	For  float64 `json:"for"`
}

// ReportBound is what the amount of a user counts at most, and how many users exceed it.
type ReportBound struct {
	Amount float64 `json:"amount"`
	Users  int64   `json:"users"`
}
