package profile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// storeFat stores a valid profile of a user, with so many values of 100 bytes.
func storeFat(t *testing.T, b *fixture, user string, values int) int {
	t.Helper()
	p := affinity.Profile{StrategyVersion: b.app().ScoringVersion, RetentionDays: b.app().RetentionDays, Anchor: b.clock,
		Until: b.clock + int64(90*24*time.Hour/time.Millisecond), Known: true, LastEventAt: b.clock, Total: values}
	for i := range values {
		value := fmt.Sprintf("%06d%s", i, strings.Repeat("v", 94))
		p.Affinities = append(p.Affinities, affinity.Affinity{Facet: "color", Value: value, Scores: []float64{float64(values - i)}})
	}
	encoded := p.AppendBinary(nil)
	write := store.ProfileWrite{User: user, Row: store.User{Ticket: 1}, Version: p.StrategyVersion, Value: encoded}
	must.Succeed(t, b.store.Users.WriteProfiles(ctx, appID, []store.ProfileWrite{write}))
	return len(encoded)
}

// A read of many users with large profiles holds some at a time: what it takes from
// the gate of the process covers their rows, and it gives it back.
func TestLargeProfilesAreReadInGroups(t *testing.T) {
	t.Parallel()
	b := newFixture(t, 90, plain)
	const users, values = 9, 500
	var tokens []string
	size := 0
	for i := range users {
		tokens = append(tokens, fmt.Sprint("u", i))
		size = storeFat(t, b, tokens[i], values)
	}
	b.eng.SetGroupBytes(2 * size)
	// A group is two users: their rows twice, and one decoded profile.
	const decoded = 512 * values
	need := int64(2*2*size + decoded)
	for _, test := range []struct {
		capacity int64
		want     error
	}{{need, nil}, {need - 2*int64(size), admission.ErrFull}} {
		gate := admission.NewGate(need)
		other, leave := gate.Enter(ctx)
		must.Succeed(t, admission.Take(other, need-test.capacity))
		in, end := gate.Enter(ctx)
		var read []string
		err := b.eng.ReadEach(in, b.app(), append(tokens, "nobody"), 0, func(user string, r profile.Result) error {
			if user == "nobody" {
				return nil
			}
			if read = append(read, user); !r.Stored || len(r.Affinities) != values {
				t.Errorf("%s: stored %v, %d affinities", user, r.Stored, len(r.Affinities))
			}
			return nil
		})
		if !errors.Is(err, test.want) {
			t.Fatalf("capacity %d: %v, want %v", test.capacity, err, test.want)
		}
		if slices.Sort(read); err == nil && !slices.Equal(read, tokens) {
			t.Errorf("read %v, want each of %v once", read, tokens)
		}
		leave()
		if err := admission.Take(in, need); err != nil {
			t.Error("the groups keep what they took")
		}
		end()
	}
}

// A read of one user takes what the row and its profile hold until it is answered.
func TestSingleReadIsAdmitted(t *testing.T) {
	t.Parallel()
	b := newFixture(t, 90, plain)
	size := storeFat(t, b, "fat", 2_000)
	for name, test := range map[string]struct {
		capacity int
		limit    int
		read     func(context.Context, int) error
		want     error
	}{
		"all affinities": {2*size + 512*10_000, 0, func(ctx context.Context, limit int) error {
			_, err := b.eng.Read(ctx, b.app(), "fat", limit)
			return err
		}, nil},
		"some affinities": {2*size + 512*10, 10, func(ctx context.Context, limit int) error {
			_, err := b.eng.Read(ctx, b.app(), "fat", limit)
			return err
		}, nil},
		"no room": {2*size + 512*9, 10, func(ctx context.Context, limit int) error {
			_, err := b.eng.Read(ctx, b.app(), "fat", limit)
			return err
		}, admission.ErrFull},
		"no room for a ranking": {2*size + 512*10, 0, func(ctx context.Context, _ int) error {
			_, err := b.eng.ReadRanking(ctx, b.app(), "fat")
			return err
		}, admission.ErrFull},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // some wait a second for room
			gate := admission.NewGate(1 << 40)
			other, leave := gate.Enter(ctx)
			defer leave()
			in, end := gate.Enter(ctx)
			defer end()
			// Requests that hold bytes may take all; a first one leaves a part free, and a
			// light one has a share of its own.
			const held = admission.Light + 1
			must.Succeed(t, errors.Join(admission.Take(other, held), admission.Take(in, held)))
			must.Succeed(t, admission.Take(other, admission.Heaviest(1<<40)-int64(test.capacity)-2*held))
			in, cancel := context.WithCancel(in)
			defer cancel()
			if err := test.read(in, test.limit); !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
		})
	}
}
