// Package auditlog records who changed what of an app. Each change has an entry in
// the table audit_log: when, the name of the key or "operator", what was done to
// what, and how it ended.
//
// It is separate because functions, and the command line on behalf of the
// operator, must record in the same way and in one log. The comparison of profiles
// with the formula, package audit, has nothing to do with it.
package auditlog

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/affinityengine/affinity/shared/deadline"
)

// Operator is the actor of a change that the operator made with their own
// credentials, and not with a key.
const Operator = "operator"

// Action is what was done.
type Action string

// The actions of keys. Jobs that the engine starts by itself, single objects and
// events have no entries: they would hide the changes that people make.
const (
	StrategySet           Action = "strategy.set"
	StrategyRestore       Action = "strategy.restore"
	ExperimentSet         Action = "experiment.set"
	ExperimentStop        Action = "experiment.stop"
	ExperimentPromote     Action = "experiment.promote"
	SettingsSet           Action = "settings.set"
	IndexClear            Action = "index.clear"
	FeedSet               Action = "feed.set"
	FeedDelete            Action = "feed.delete"
	SegmentSet            Action = "segment.set"
	SegmentDelete         Action = "segment.delete"
	SegmentExport         Action = "segment.export"
	SegmentRefresh        Action = "segment.refresh"
	UserDelete            Action = "user.delete"
	UserExport            Action = "user.export"
	UsersRestore          Action = "users.restore"
	OptOutSet             Action = "optout.set"
	OptOutRemove          Action = "optout.remove"
	ConsentSet            Action = "consent.set"
	ConsentForget         Action = "consent.forget"
	UserRegion            Action = "user.region"
	IdentityLink          Action = "identity.link"
	IdentityUnlink        Action = "identity.unlink"
	IdentityPreview       Action = "identity.preview"
	IdentityPreviewCancel Action = "identity.previewCancel"
	RecomputeStart        Action = "recompute.start"
	RecomputeCancel       Action = "recompute.cancel"
	ReenrichStart         Action = "reenrich.start"
	ReenrichCancel        Action = "reenrich.cancel"
	CrowdStart            Action = "crowd.start"
	CrowdCancel           Action = "crowd.cancel"
	BacktestStart         Action = "backtest.start"
	BacktestCancel        Action = "backtest.cancel"
	ReportStart           Action = "report.start"
	ReportCancel          Action = "report.cancel"
	SchemaStart           Action = "schema.start"
	SchemaBackfill        Action = "schema.backfill"
	SchemaVerify          Action = "schema.verify"
	SchemaCutover         Action = "schema.cutover"
	SchemaRollback        Action = "schema.rollback"
	SchemaDrop            Action = "schema.drop"
)

// The actions of the operator.
const (
	appCreate      Action = "app.create"
	appRetention   Action = "app.retention"
	appConsistency Action = "app.consistency"
	appRanking     Action = "app.ranking"
	appSegments    Action = "app.segments"
	appIdentity    Action = "app.identity"
	appResidency   Action = "app.residency"
	appPurposes    Action = "app.purposes"
	appHoldout     Action = "app.holdout"
	appLimits      Action = "app.limits"
	appEncoding    Action = "app.encoding"
	AppTickets     Action = "app.tickets"
	AppDump        Action = "app.dump"
	AppMove        Action = "app.move"
	keyAdd         Action = "key.add"
	keyRotate      Action = "key.rotate"
	keyChange      Action = "key.change"
	keyRemove      Action = "key.remove"
)

// Actions are all actions. It must not be modified.
var Actions = []Action{
	StrategySet, StrategyRestore, ExperimentSet, ExperimentStop, ExperimentPromote,
	SettingsSet, IndexClear, FeedSet, FeedDelete, SegmentSet, SegmentDelete,
	SegmentExport, SegmentRefresh, UserDelete, UserExport, UsersRestore, OptOutSet, OptOutRemove,
	ConsentSet, ConsentForget, UserRegion, IdentityLink, IdentityUnlink, IdentityPreview, IdentityPreviewCancel,
	RecomputeStart, RecomputeCancel, ReenrichStart, ReenrichCancel, CrowdStart, CrowdCancel, BacktestStart, BacktestCancel,
	ReportStart, ReportCancel,
	SchemaStart, SchemaBackfill, SchemaVerify, SchemaCutover, SchemaRollback, SchemaDrop,
	appCreate, appRetention, appConsistency, appRanking, appSegments, appIdentity, appResidency, appPurposes,
	appHoldout, appLimits, appEncoding, AppTickets, AppDump, AppMove, keyAdd, keyRotate, keyChange, keyRemove,
}

// Outcome is how a change ended.
type Outcome string

const (
	// Unknown says that the process ended, or lost the log, before it could say more:
	// the change may have been made.
	Unknown Outcome = "unknown"
	Done    Outcome = "done"
	// Failed says that the request was answered with an error. A part of the change may
	// have been made.
	Failed Outcome = "failed"
)

// Entry is a change of an app.
type Entry struct {
	// ID orders the entries of an app: of two, the newer has the smaller one.
	ID string `json:"-"`
	// At is when the change began, by the clock of the machine that made it, to the
	// microsecond.
	At time.Time `json:"-"`
	// Actor is the name of the key, or the start of its hash if it has no name, or
	// Operator.
	Actor  string `json:"actor"`
	Action Action `json:"action"`
	// Subject names what was changed: an index, a job, a key. Empty: the app, or a user.
	Subject string `json:"subject,omitempty"`
	// User is the Hash of the user that the change is about. Empty: it is not about one.
	User string `json:"user,omitempty"`
	// Detail says in a few words what the change was.
	Detail  string  `json:"detail,omitempty"`
	Outcome Outcome `json:"-"`
	// Trace is the request's trace: its log lines carry it. Empty: it had none.
	Trace string `json:"trace,omitempty"`
}

// End is what is known of a change when it has ended.
type End struct {
	Outcome Outcome `json:"outcome"`
	// Subject and Detail replace those of the entry, unless they are empty.
	Subject string `json:"subject,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// Query selects entries.
type Query struct {
	// After is the ID of an entry: only older ones are selected. Empty: all.
	After string
	// Limit is how many entries are selected at most.
	Limit int
	// Action and User select the entries that have them. Empty: all.
	Action Action
	User   string
}

// maxMicros is 16 digits, the microsecond of an ID that sorts before all others.
const maxMicros = 9_999_999_999_999_999

var idForm = regexp.MustCompile(`^[0-9]{16}-[0-9a-f]{16}$`)

// NewID returns the ID of an entry. No two are equal, even at one time.
func NewID(at time.Time) string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	return fmt.Sprintf("%016d-%x", min(max(maxMicros-at.UnixMicro(), 0), maxMicros), random)
}

// ValidID reports whether s has the form of an ID.
func ValidID(s string) bool { return idForm.MatchString(s) }

// timeOf returns the time of an ID, which must be valid.
func timeOf(id string) time.Time {
	var rest int64
	_, _ = fmt.Sscanf(id[:16], "%d", &rest)
	return time.UnixMicro(maxMicros - rest).UTC()
}

// Hash returns what the log says of a user: it shows nothing to people who do not
// know the user token, and the same user has the same hash in all entries of an app.
func Hash(salt []byte, userToken string) string {
	mac := hmac.New(sha256.New, salt)
	mac.Write([]byte(userToken))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// Recorder records changes. It is safe for concurrent use.
type Recorder struct {
	log   Log
	now   func() time.Time
	lines *slog.Logger
	trace func(context.Context) string
}

// New returns a Recorder. trace returns the trace of a request, and may be nil.
func New(log Log, now func() time.Time, lines *slog.Logger, trace func(context.Context) string) *Recorder {
	return &Recorder{log, now, lines, trace}
}

// Change is a change that is about to be made.
type Change struct {
	App, Actor string
	Action     Action
	Subject    string
	// User is the token of the user that the change is about. The log keeps its Hash.
	User   string
	Detail string
}

// maxText is how many bytes of a subject and a detail the log keeps.
const maxText = 500

// endTime limits how long a change waits for its end to be stored.
const endTime = 5 * time.Second

// Do records a change and makes it. It calls do only after the entry is stored, so
// no change is without one: if the log cannot be written, Do returns an Unwritten.
// Any other error is that of do.
//
// do returns what is known at the end, with an error too; it may hold no user
// token. If the end cannot be stored, the entry stays Unknown and Do returns what do
// returned: the change has been made.
func (r *Recorder) Do(ctx context.Context, c Change, do func() (End, error)) error {
	e := Entry{At: r.now(), Actor: c.Actor, Action: c.Action, Subject: cut(c.Subject), Detail: cut(c.Detail)}
	e.ID = NewID(e.At)
	if r.trace != nil {
		e.Trace = r.trace(ctx)
	}
	if err := r.begin(ctx, c, e); err != nil {
		return &Unwritten{err}
	}
	end, err := do()
	if end.Outcome = Done; err != nil {
		end.Outcome = Failed
	}
	end.Subject, end.Detail = cut(end.Subject), cut(end.Detail)
	// The client may be gone by now.
	ctx, cancel := deadline.Detach(ctx, endTime)
	defer cancel()
	if err := Finish(ctx, r.log, c.App, e.ID, end); err != nil {
		r.lines.LogAttrs(ctx, slog.LevelError, "the audit log does not say how a change ended", slog.String("app", c.App),
			slog.String("entry", e.ID), slog.String("outcome", string(end.Outcome)), slog.Any("error", err))
	}
	return err
}

func (r *Recorder) begin(ctx context.Context, c Change, e Entry) error {
	if c.User != "" {
		salt, err := r.log.AuditSalt(ctx, c.App)
		if err != nil {
			return err
		}
		e.User = Hash(salt, c.User)
	}
	return Begin(ctx, r.log, c.App, e)
}

// cut returns the start of a text that is too long for an entry.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return s[:maxText] + "..."
}

// Unwritten says that a change was not made because it could not be recorded.
type Unwritten struct{ Err error }

// Error says why.
func (u *Unwritten) Error() string {
	return fmt.Sprintf("the change is not made: it cannot be recorded in the audit log: %v", u.Err)
}

// Unwrap returns Err.
func (u *Unwritten) Unwrap() error { return u.Err }

// Transient reports that the change may succeed later.
func (u *Unwritten) Transient() bool { return true }
