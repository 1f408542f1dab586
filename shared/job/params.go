package job

import (
	"time"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// ParamsOf returns the parameters of a job if they are of type P, else zero
// parameters.
func ParamsOf[P Params](j Job) P {
	p, _ := j.Params.(P)
	return p
}

// LogWindow is the range of time in which a job reads the log. The parameters
// of jobs that read the log include one.
type LogWindow struct {
	// RetentionDays is the app's retention at the start of the job. 0 means no
	// limit.
	RetentionDays int `firestore:"retentionDays"`
	// Since is where the window begins; zero if it is unbounded.
	Since time.Time `firestore:"since"`
}

// WindowOf returns the window of a retention as of now.
func WindowOf(now time.Time, retentionDays int) LogWindow {
	w := LogWindow{RetentionDays: retentionDays}
	if from := (affinity.Window{Now: now.UnixMilli(), RetentionDays: retentionDays}).From(); from > 0 {
		w.Since = Stamp(time.UnixMilli(from))
	}
	return w
}

// SinceMillis is Since in ms, 0 if it is zero.
func (w LogWindow) SinceMillis() int64 {
	if w.Since.IsZero() {
		return 0
	}
	return w.Since.UnixMilli()
}
