package move

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// slowMover has no time to copy the log of users whose token begins with long.
type slowMover struct{ Mover }

func (slowMover) MoveUser(_ context.Context, _ config.App, user string, _ time.Time) (int, error) {
	if strings.HasPrefix(user, "long") {
		return 0, profile.ErrUnfinished
	}
	return 0, nil
}

// A shard goes on with the first user who is unfinished, in the order of the rows: "long+"
// comes before "long".
func TestUnfinishedUsersComeFirst(t *testing.T) {
	s, us := storetest.New(t), storetest.New(t)
	for _, user := range []string{"a", "long", "long+", "z"} {
		if _, err := s.Users.TakeTicket(t.Context(), "shop", user); err != nil {
			t.Fatal(err)
		}
	}
	app := config.App{ID: "shop", Region: "eu", Move: config.Move{ID: "m", From: "eu", To: "us", Births: "us", Phase: config.MoveUsers}}
	w := &work{regions: Regions{"eu", map[string]*store.Store{"eu": s, "us": us}}, mover: slowMover{}, now: time.Now}
	p, err := w.Process(t.Context(), draft(app), app, job.Shard{}, time.Now().Add(time.Minute), func(job.Progress) error { return nil })
	if err != nil || p.Done || p.Next != "long+" || p.Counts[job.CountUsers] != 1 {
		t.Errorf("%+v (%v), want it to go on with long+, behind one user", p, err)
	}
}

// On the way back a phase works on the users of both regions, each once and in the order of
// the rows.
func TestScanOfBothRegions(t *testing.T) {
	r := Regions{"eu", map[string]*store.Store{"eu": storetest.New(t), "us": storetest.New(t)}}
	for region, users := range map[string]string{"eu": "a b+ c e", "us": "b b+ d e f"} {
		for user := range strings.FieldsSeq(users) {
			if _, err := r.Rows[region].Users.TakeTicket(t.Context(), "shop", user); err != nil {
				t.Fatal(err)
			}
		}
	}
	scan := func(p Params, from, to string, limit int) (string, error) {
		var got []string
		err := r.scan(t.Context(), "shop", p, from, to, func(user string) error {
			if got = append(got, strings.Clone(user)); len(got) == limit {
				return errGroup
			}
			return nil
		})
		return strings.Join(got, " "), err
	}
	for _, c := range []struct {
		p        Params
		from, to string
		limit    int
		want     string
	}{
		{Params{Region: "eu"}, "", "", 0, "a b+ c e"},
		{Params{Region: "eu", Also: "us"}, "", "", 0, "a b+ b c d e f"},
		{Params{Region: "us", Also: "eu"}, "b+", "e", 0, "b+ b c d"},
		{Params{Region: "us", Also: "eu"}, "x", "", 0, ""},
		{Params{Region: "us", Also: "eu"}, "", "", 2, "a b+"},
	} {
		got, err := scan(c.p, c.from, c.to, c.limit)
		if got != c.want || (err == errGroup) != (c.limit > 0) || c.limit == 0 && err != nil {
			t.Errorf("%+v, %q to %q: %q (%v), want %q", c.p, c.from, c.to, got, err, c.want)
		}
	}
	for _, p := range []Params{{Region: "mars"}, {Region: "eu", Also: "mars"}} {
		if _, err := scan(p, "", "", 0); err == nil || !strings.Contains(err.Error(), `needs region "mars"`) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := r.scan(stopped, "shop", Params{Region: "eu", Also: "us"}, "", "", func(string) error { return nil }); err == nil {
		t.Error("a scan that cannot read ends well")
	}
}

// onceOpen says of each user once that the phase has something left to do, and of "stuck"
// always.
type onceOpen struct {
	Mover
	mu   sync.Mutex
	seen map[string]bool
}

func (o *onceOpen) UserIsDone(_ context.Context, _ config.App, user string) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	done := o.seen[user] && user != "stuck"
	o.seen[user] = true
	return done, nil
}

// What clients are just changing is not left to do: a verification looks again before it
// counts a user, or a row that is in one region alone.
func TestVerificationLooksAgain(t *testing.T) {
	ctx, eu, us := t.Context(), storetest.New(t), storetest.New(t)
	app := config.App{ID: "shop", Region: "eu", Move: config.Move{ID: "m", From: "eu", To: "us", Births: "us", Phase: config.MoveUsers}}
	w := &work{regions: Regions{"eu", map[string]*store.Store{"eu": eu, "us": us}}, mover: &onceOpen{seen: map[string]bool{}}, now: time.Now}
	put := func(s *store.Store, ids ...string) {
		for _, id := range ids {
			if err := s.Catalog.PutObjects(ctx, "shop", "products", []store.Object{{ID: id, Record: []byte("{}")}}); err != nil {
				t.Error(err)
			}
		}
	}
	verify := func(s job.Shard, want int64) {
		t.Helper()
		var n int64
		for more := true; more; more = s.Next != "" {
			v, err := w.Verify(ctx, draft(app), app, s, time.Now().Add(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			s.Next, n = v.Next, n+v.Stale
		}
		if n != want {
			t.Errorf("%d are left, want %d", n, want)
		}
	}
	for _, user := range []string{"a", "stuck", "z"} {
		if _, err := eu.Users.TakeTicket(ctx, "shop", user); err != nil {
			t.Fatal(err)
		}
	}
	verify(job.Shard{}, 1)

	put(eu, "1", "2", "3")
	put(us, "2")
	var writing sync.WaitGroup
	writing.Go(func() {
		time.Sleep(lookAgain / 5)
		put(us, "1", "3")
	})
	verify(job.Shard{Part: others}, 0)
	writing.Wait()
	put(eu, "4")
	verify(job.Shard{Part: others}, 1)
}

// A phase whose region the deployment lacks fails, and says what comes first.
func TestRegionIsMissing(t *testing.T) {
	app := config.App{ID: "shop", Region: "eu", Move: config.Move{ID: "m", From: "asia", To: "eu", Births: "eu", Phase: config.MoveUsers, Back: true}}
	w := &work{regions: Regions{"eu", map[string]*store.Store{"eu": storetest.New(t)}}, now: time.Now}
	for _, s := range []job.Shard{{}, {Part: others}} {
		_, err := w.Process(t.Context(), draft(app), app, s, time.Now(), nil)
		_, failed := w.Verify(t.Context(), draft(app), app, s, time.Now())
		for _, err := range []error{err, failed} {
			if !errors.Is(err, job.ErrFailed) || !strings.Contains(err.Error(), `needs region "asia", which this deployment does not have: add it to the regions again`) {
				t.Errorf("%v", err)
			}
		}
	}
}
