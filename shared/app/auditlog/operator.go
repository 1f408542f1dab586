package auditlog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// Operated is a Store whose changes are recorded as the operator's.
type Operated struct {
	*config.Store
	recorder *Recorder
}

// NewOperated returns an Operated over a Store.
func NewOperated(s *config.Store, r *Recorder) Operated { return Operated{s, r} }

func (o Operated) do(ctx context.Context, c Change, do func() error) error {
	c.Actor = Operator
	return o.recorder.Do(ctx, c, func() (End, error) { return End{}, do() })
}

// existing is do for a change of an app. It returns ErrNotFound without an entry if
// the app does not exist: the log of an app that never existed must not begin.
func (o Operated) existing(ctx context.Context, c Change, do func() error) error {
	if _, err := o.App(ctx, c.App); err != nil {
		return err
	}
	return o.do(ctx, c, do)
}

// CreateApp records app.create.
func (o Operated) CreateApp(ctx context.Context, app config.App) error {
	switch _, err := o.App(ctx, app.ID); {
	case err == nil:
		return config.ErrExists
	case !errors.Is(err, config.ErrNotFound):
		return err
	}
	if _, err := app.Prepare(); err != nil {
		return err
	}
	// The log of a deleted app must not begin again.
	switch d, err := o.Deletion(ctx, app.ID); {
	case err == nil:
		if err := d.Reusable(time.Now()); err != nil {
			return err
		}
	case !errors.Is(err, config.ErrNotFound):
		return err
	}
	c := Change{App: app.ID, Action: appCreate, Detail: fmt.Sprintf("retention %d days", app.RetentionDays)}
	if app.Region == "" {
		return o.do(ctx, c, func() error { return o.Store.CreateApp(ctx, app) })
	}
	// The log lies in the app's region, which only its configuration says.
	if err := o.Store.CreateApp(ctx, app); err != nil {
		return err
	}
	c.Detail += ", region " + app.Region
	return o.do(ctx, c, func() error { return nil })
}

// SetRetention records app.retention.
func (o Operated) SetRetention(ctx context.Context, appID string, days int) error {
	app, err := o.App(ctx, appID)
	if err != nil {
		return err
	}
	c := Change{App: appID, Action: appRetention, Detail: fmt.Sprintf("%d to %d days", app.RetentionDays, days)}
	return o.do(ctx, c, func() error { return o.Store.SetRetention(ctx, appID, days) })
}

// SetConsistency records app.consistency.
func (o Operated) SetConsistency(ctx context.Context, appID string, to config.Consistency) error {
	return o.existing(ctx, Change{App: appID, Action: appConsistency, Detail: string(to)}, func() error {
		return o.Store.SetConsistency(ctx, appID, to)
	})
}

// SetBrowserRanking records app.ranking.
func (o Operated) SetBrowserRanking(ctx context.Context, appID string, on bool) error {
	detail := "browser off"
	if on {
		detail = "browser on"
	}
	return o.existing(ctx, Change{App: appID, Action: appRanking, Detail: detail}, func() error {
		return o.Store.SetBrowserRanking(ctx, appID, on)
	})
}

// SetSegments records app.segments.
func (o Operated) SetSegments(ctx context.Context, appID string, on bool) error {
	detail := "off"
	if on {
		detail = "on"
	}
	return o.existing(ctx, Change{App: appID, Action: appSegments, Detail: detail}, func() error {
		return o.Store.SetSegments(ctx, appID, on)
	})
}

// SetIdentity records app.identity.
func (o Operated) SetIdentity(ctx context.Context, appID string, to config.Identity,
	settle time.Duration) (app config.App, err error) {
	err = o.existing(ctx, Change{App: appID, Action: appIdentity, Detail: to.String()}, func() error {
		app, err = o.Store.SetIdentity(ctx, appID, to, settle)
		return err
	})
	return app, err
}

// SetResidency records app.residency.
func (o Operated) SetResidency(ctx context.Context, appID string, to config.Residency,
	settle time.Duration) (app config.App, err error) {
	err = o.existing(ctx, Change{App: appID, Action: appResidency, Detail: to.String()}, func() error {
		app, err = o.Store.SetResidency(ctx, appID, to, settle)
		return err
	})
	return app, err
}

// SetPurposes records app.purposes.
func (o Operated) SetPurposes(ctx context.Context, appID string, to []consent.Purpose) (app config.App, err error) {
	names := []string{"off"}
	if len(to) > 0 {
		names = nil
	}
	for _, p := range to {
		names = append(names, p.Name)
	}
	c := Change{App: appID, Action: appPurposes, Detail: strings.Join(names, ", ")}
	err = o.existing(ctx, c, func() error {
		app, err = o.Store.SetPurposes(ctx, appID, to)
		return err
	})
	return app, err
}

// SetHoldout records app.holdout.
func (o Operated) SetHoldout(ctx context.Context, appID string, to experiment.Holdout) (app config.App, err error) {
	err = o.existing(ctx, Change{App: appID, Action: appHoldout, Detail: cmp.Or(to.ID(), "off")}, func() error {
		app, err = o.Store.SetHoldout(ctx, appID, to)
		return err
	})
	return app, err
}

// SetLimits records app.limits.
func (o Operated) SetLimits(ctx context.Context, appID string, n limit.Numbers) error {
	detail, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return o.existing(ctx, Change{App: appID, Action: appLimits, Detail: string(detail)}, func() error {
		return o.Store.SetLimits(ctx, appID, n)
	})
}

// SetEncoding records app.encoding.
func (o Operated) SetEncoding(ctx context.Context, appID string, e schema.Encoding) (app config.App, err error) {
	if _, err := o.App(ctx, appID); err != nil {
		return config.App{}, err
	}
	err = o.recorder.Do(ctx, Change{App: appID, Actor: Operator, Action: appEncoding}, func() (End, error) {
		app, err = o.Store.SetEncoding(ctx, appID, e)
		return End{Detail: "encoding " + string(app.Log.Encoding)}, err
	})
	return app, err
}

// PutKey records key.add, key.change if the key exists, or key.rotate if a valid
// one of that name does.
func (o Operated) PutKey(ctx context.Context, appID string, key config.Key) error {
	keys, err := o.Keys(ctx, appID)
	if err != nil {
		return err
	}
	if _, err := key.Prepare(); err != nil {
		return err
	}
	c := Change{App: appID, Action: keyAdd, Subject: key.Called(), Detail: describe(key)}
	for _, k := range keys {
		switch {
		case k.Hash == key.Hash:
			c.Action = keyChange
		case c.Action == keyAdd && key.Name != "" && k.Name == key.Name && !k.Ended(o.recorder.now()):
			c.Action = keyRotate
		}
	}
	return o.do(ctx, c, func() error { return o.Store.PutKey(ctx, appID, key) })
}

// DeleteKey records key.remove.
func (o Operated) DeleteKey(ctx context.Context, appID, hash string) error {
	key, err := o.Key(ctx, appID, hash)
	if err != nil {
		return err
	}
	return o.do(ctx, Change{App: appID, Action: keyRemove, Subject: key.Called(), Detail: describe(key)}, func() error {
		return o.Store.DeleteKey(ctx, appID, hash)
	})
}

// describe says which of the keys with a name is meant, and what it permits.
func describe(k config.Key) string {
	parts := []string{"hash " + k.ID(), "permissions " + strings.Join(k.ACL, ",")}
	if !k.ValidUntil.IsZero() {
		parts = append(parts, "ends "+k.ValidUntil.UTC().Format(time.RFC3339))
	}
	if k.HashTokens {
		parts = append(parts, "hashes tokens")
	}
	if k.Region != "" {
		parts = append(parts, "users begin in "+k.Region)
	}
	if len(k.Parent) > 0 {
		parts = append(parts, "parent")
	}
	return strings.Join(parts, ", ")
}
