package profile_test

import (
	"testing"

	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// Anybody can read any token. A read must not make users of them: recomputes and
// audits go through every row.
func TestReadOfUnknownUserLeavesNoRow(t *testing.T) {
	b := newFixture(t, 90, plain)
	for name, read := range map[string]func() error{
		"one": func() error {
			_, err := b.eng.Read(ctx, b.app(), "one", 0)
			return err
		},
		"many": func() error {
			_, err := b.eng.ReadMany(ctx, b.app(), []string{"many", "more"}, 0)
			return err
		},
		"computed": func() error {
			_, err := b.eng.Compute(ctx, b.app(), []string{"computed"}, affinity.Compile(plain))
			return err
		},
	} {
		if err := read(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		err := b.store.Users.ScanUsers(ctx, appID, "", "", 0, store.UserState, func(user string, row store.User) error {
			t.Errorf("%s: user %s has a row: %+v", name, user, row)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	b.recomputeAll()
	if r := b.read("one"); r.Known {
		t.Errorf("the user is known: %+v", r)
	}
}

// A user who is named more than once is read once, from the stored profile, the
// log or blocks.
func TestReadManyWithDuplicates(t *testing.T) {
	s := newHarness(t, storetest.NewDeployed)
	s.apply(s.at(1), s.at(5), bought("v", s.clock-hour))
	e, users := s.neverFolding(), []string{"u", "v", "u", "nobody", "v", "u", "nobody"}
	check := func(from string, stored bool) {
		t.Helper()
		got, err := e.ReadMany(ctx, s.app(), users, 0)
		if err != nil {
			t.Fatalf("from %s: %v", from, err)
		}
		if len(got) != 3 || red(got["u"]) != 60 || red(got["v"]) != 30 || got["nobody"].Known {
			t.Errorf("from %s: %+v, want 60 of u, 30 of v and an unknown user", from, got)
		}
		if got["u"].Stored != stored || got["v"].Stored != stored {
			t.Errorf("from %s: stored %v and %v, want %v", from, got["u"].Stored, got["v"].Stored, stored)
		}
	}
	check("stored profiles", true)
	s.setStrategy(plainer)
	s.setStrategy(plain) // so that reads compute
	check("the log", false)
	s.fold()
	s.setStrategy(plainer)
	s.setStrategy(plain)
	check("blocks", false)
	sets, err := e.Compute(ctx, s.app(), users, affinity.Compile(plain))
	if err != nil || len(sets) != 3 || len(sets["u"]) != 1 {
		t.Errorf("compute: %+v, %v, want one profile for each of three users", sets, err)
	}
	// Two computations of one user would each miss the blocks that the other read.
	if c := e.Counters(); c.Restarts.Load() != 0 || c.CorruptBlocks.Load() != 0 {
		t.Errorf("%d restarts and %d damaged blocks, want 0", c.Restarts.Load(), c.CorruptBlocks.Load())
	}
	if m := s.manifest(); len(m.Blocks) != 1 {
		t.Errorf("%+v, want the block to stay named", m)
	}
}
