// Package location finds the region in which each user lives, in apps whose users have regions of their own. It gives
// a location to a user who has none. The rules are those of functions/docs/design/regions.md, "Where a person lives".
//
// A location is a row of the table locations. That in the region of the app decides. The other regions have copies,
// so that a process there asks its own Bigtable. A copy, and what a process remembers, may be old. That costs requests
// and no more: the rows of the user say who owns them.
package location

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/store"
)

// Lasting is the time after a deletion in which something of before may still come: dead letters wait for 31 days, the
// archive keeps 30, and a backup is restored for 90.
const Lasting = 91 * 24 * time.Hour

// unused is the age from which on a location goes that names a region which users leave, if nobody has a row there.
const unused = 2 * time.Hour

// most bounds the locations that a process remembers.
const most = 1 << 16

// Finder finds the regions of users. It is safe for concurrent use. A process has one, for all regions.
type Finder struct {
	in     func(region string) *store.Store
	own    string
	now    func() time.Time
	known  cache.Map[user, found]
	counts counts
}

type user struct{ app, token string }

type found struct {
	store.Location
	at time.Time
}

type counts struct{ remembered, copied, asked atomic.Int64 }

// New returns a Finder. in returns the Bigtable of a region, and own is the region of the process.
func New(in func(region string) *store.Store, own string, now func() time.Time) *Finder {
	return &Finder{in: in, own: own, now: now, known: cache.New[user, found](most)}
}

// Each calls fn with the metric name, the help text and the value of each counter.
func (f *Finder) Each(fn func(name, help string, read func() int64)) {
	fn("affinity.locations_remembered", "Regions of users that the process remembered.", f.counts.remembered.Load)
	fn("affinity.locations_copied", "Regions of users that it read in its own region.", f.counts.copied.Load)
	fn("affinity.locations_asked", "Regions of users that it read in the region of the app.", f.counts.asked.Load)
}

// Look reads the location of a user in the row that decides. It is the zero value if there is none.
func (f *Finder) Look(ctx context.Context, app config.App, token string) (store.Location, error) {
	f.counts.asked.Add(1)
	l, err := f.in(app.Residency.Home).Locations.Find(ctx, app.ID, token)
	f.remember(app, token, l)
	return l, err
}

// remember keeps a location. Nobody remembers that there is none.
func (f *Finder) remember(app config.App, token string, l store.Location) {
	if l == (store.Location{}) {
		f.known.Delete(user{app.ID, token})
		return
	}
	f.known.Set(user{app.ID, token}, found{l, f.now()})
}

// Find is Look. It takes what the process has read within the time for which it uses a configuration, and the copy in
// the region of the process.
func (f *Finder) Find(ctx context.Context, app config.App, token string) (store.Location, error) {
	if known, ok := f.known.Get(user{app.ID, token}); ok && f.now().Sub(known.at) < config.TTL {
		f.counts.remembered.Add(1)
		return known.Location, nil
	}
	if f.own == "" || f.own == app.Residency.Home {
		return f.Look(ctx, app, token)
	}
	l, err := f.in(f.own).Locations.Find(ctx, app.ID, token)
	if err != nil || l == (store.Location{}) {
		return f.Look(ctx, app, token) // also while the region of the process is down
	}
	f.counts.copied.Add(1)
	f.remember(app, token, l)
	return l, nil
}

// Region returns the region in which a user lives. A user without a location gets one: they live in the region of the
// app if a row there says anything of them, and else begin in the region rule. In an app that is being prepared all
// users live in its region.
func (f *Finder) Region(ctx context.Context, app config.App, token, rule string) (string, error) {
	l, err := f.location(ctx, app, token, rule, f.Find)
	return l.Region, err
}

// RegionNow is Region by the row that decides. It renews a location that is old. Either it or who forgets the token
// changes that location: so the caller may give a row an owner.
func (f *Finder) RegionNow(ctx context.Context, app config.App, token, rule string) (string, error) {
	for {
		l, err := f.location(ctx, app, token, rule, f.Look)
		lasting := Lasting
		if app.Residency.Leave[l.Region] != "" {
			lasting = unused
		}
		if err != nil || f.now().Sub(time.UnixMicro(l.Since)) < lasting/2 {
			return l.Region, err
		}
		if _, err := f.Touch(ctx, app, token, l, l.Region); err != nil {
			return "", err
		}
	}
}

func (f *Finder) location(ctx context.Context, app config.App, token, rule string,
	find func(context.Context, config.App, string) (store.Location, error)) (store.Location, error) {
	for {
		l, err := find(ctx, app, token)
		if err != nil || l != (store.Location{}) {
			return l, err
		}
		if _, err := f.begin(ctx, app, token, rule); err != nil {
			return store.Location{}, err
		}
		find = f.Look
	}
}

// Forget removes the location of a user in the row that decides, if that is still from, and reports whether it was. The
// copies stay until Uncopy.
func (f *Finder) Forget(ctx context.Context, app config.App, token string, from store.Location) (bool, error) {
	f.known.Delete(user{app.ID, token})
	return f.in(app.Residency.Home).Locations.Change(ctx, app.ID, token, from, store.Location{})
}

// ForgetUnused removes the locations of an app that name a region in which nobody has a row, and reports how many are
// too young for it.
func (f *Finder) ForgetUnused(ctx context.Context, app config.App, region string) (young int, err error) {
	before := f.now().Add(-unused).UnixMicro()
	home := f.in(app.Residency.Home)
	err = home.Locations.Each(ctx, app.ID, func(key string, l store.Location) error {
		if l.Region != region {
			return nil
		}
		if l.Since >= before {
			young++
			return nil
		}
		took, err := home.Locations.Remove(ctx, app.ID, key, l)
		if err == nil && !took {
			young++
		}
		for _, other := range app.Residency.Regions {
			if err == nil && took && other != app.Residency.Home {
				err = f.in(other).Locations.Uncopy(ctx, app.ID, key)
			}
		}
		return err
	})
	return young, err
}

// Uncopy removes the copies of the location of a user who has none, and reports whether there were any. Without a copy
// the row that decides is read.
func (f *Finder) Uncopy(ctx context.Context, app config.App, token string) (bool, error) {
	had := false
	for _, region := range app.Residency.Regions {
		if region == app.Residency.Home {
			continue
		}
		l, err := f.in(region).Locations.Find(ctx, app.ID, token)
		if err == nil && l != (store.Location{}) {
			had, err = true, f.in(region).Locations.Copy(ctx, app.ID, token, store.Location{})
		}
		if err != nil {
			return had, err
		}
	}
	return had, nil
}

// begin creates the location of a user, unless they have one.
func (f *Finder) begin(ctx context.Context, app config.App, token, rule string) (bool, error) {
	at, region := f.in(app.Residency.Home), rule
	if app.Residency.Mode != config.ResidencyOn {
		region = app.Residency.Home
	}
	if region != app.Residency.Home {
		row, err := at.Users.ReadPrimary(ctx, app.ID, token, store.UserState)
		if err != nil {
			return false, err
		}
		if row.Exists {
			region = app.Residency.Home // a user from before locations
		}
	}
	l := store.Location{Region: region, Since: f.now().UnixMicro()}
	took, err := at.Locations.Change(ctx, app.ID, token, store.Location{}, l)
	if err == nil && took {
		err = f.copy(ctx, app, token, l)
	}
	return took, err
}

// copy writes a location into the regions of the app whose rows do not decide.
func (f *Finder) copy(ctx context.Context, app config.App, token string, l store.Location) error {
	for _, region := range app.Residency.Regions {
		if region == app.Residency.Home {
			continue
		}
		if err := f.in(region).Locations.Copy(ctx, app.ID, token, l); err != nil {
			return err
		}
	}
	return nil
}

// Touch changes the location of a user to one as of now, and reports whether it was still from. It writes the copies
// first: from the instant of the location on no copy says the earlier one, but for what a slow process writes.
func (f *Finder) Touch(ctx context.Context, app config.App, token string, from store.Location,
	region string) (bool, error) {
	if err := f.copy(ctx, app, token, store.Location{Region: region, Since: f.stamp(from)}); err != nil {
		return false, err
	}
	to := store.Location{Region: region, Since: f.stamp(from)}
	return f.in(app.Residency.Home).Locations.Change(ctx, app.ID, token, from, to)
}

// stamp returns an instant of now that is later than that of a location.
func (f *Finder) stamp(from store.Location) int64 { return max(f.now().UnixMicro(), from.Since+1) }

// Repair writes a location to its copies, of which one names another region, and makes its instant later than that. It
// does so before, too: should it end between the two, the location still says that a copy was wrong lately.
func (f *Finder) Repair(ctx context.Context, app config.App, token string, l store.Location) error {
	renewed := store.Location{Region: l.Region, Since: f.stamp(l)}
	took, err := f.in(app.Residency.Home).Locations.Change(ctx, app.ID, token, l, renewed)
	if err != nil || !took {
		return err
	}
	_, err = f.Touch(ctx, app, token, renewed, l.Region)
	return err
}

// Copied reports whether a location is that of a user still, and all copies name its region.
func (f *Finder) Copied(ctx context.Context, app config.App, token string, l store.Location) (bool, error) {
	if now, err := f.Look(ctx, app, token); err != nil || now != l {
		return false, err
	}
	for _, region := range app.Residency.Regions {
		if region == app.Residency.Home {
			continue
		}
		copied, err := f.in(region).Locations.Find(ctx, app.ID, token)
		if err != nil || copied.Region != l.Region {
			return false, err
		}
	}
	return true, nil
}
