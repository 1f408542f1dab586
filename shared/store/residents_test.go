package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/store"
)

// Users who live in several regions are listed and sampled over all of them, and a deletion says nothing of the keys of one
// to those who asked.
func TestUsersOfRegions(t *testing.T) {
	place := store.Place{Read: "eu", Write: []string{"eu"}, Users: []string{"eu", "us"}}
	eu, us, both := twoRegions(t, &place, func() {})
	var all []string
	for i := range 12 {
		user := fmt.Sprintf("user-%02d", i)
		all = append(all, user)
		_, err := []*store.Store{eu, us}[i%2].Users.TakeTicket(t.Context(), "shop", user)
		must.Succeed(t, err)
	}
	_, err := us.Users.TakeTicket(t.Context(), "shop", all[0]) // which has moved away
	must.Succeed(t, err)
	var listed []string
	for after := ""; ; {
		page, err := both.Users.ListUsers(t.Context(), "shop", "", after, 5)
		must.Succeed(t, err)
		if listed = append(listed, page...); len(page) < 5 {
			break
		}
		after = page[4]
	}
	if !slices.Equal(listed, all) {
		t.Errorf("listed are %q", listed)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	sample, err := both.Users.SampleUsers(t.Context(), "shop", 50, 50, rnd)
	if err != nil || !slices.Equal(sample.Users, all) || !sample.All {
		t.Errorf("of 50 users all are sampled: %+v, %v", sample, err)
	}
	in := [2]int{} // of users of eu and of us
	for range 300 {
		sample, err := both.Users.SampleUsers(t.Context(), "shop", 2, 6, rnd)
		if err != nil || sample.All || sample.Read != 6 || sample.First+sample.Last != "" {
			t.Fatalf("a sample of six: %+v, %v", sample, err)
		}
		for _, user := range sample.Users {
			in[slices.Index(all, user)%2]++
		}
	}
	if in[0] < 200 || in[1] < 150 {
		t.Errorf("300 samples of two have %d users of one region, %d of the other", in[0], in[1])
	}
	must.Succeed(t, eu.Jobs.PutJobDetails(t.Context(), "shop", "", "moves,a", "v", true, []byte("x")))
	must.Succeed(t, both.Jobs.PutJobDetails(t.Context(), "shop", "us", "moves,a,1", "v", true, []byte("x")))
	found, err := eu.Jobs.JobDetails(t.Context(), "shop", "", map[string]string{"moves,a": "v", "moves,a,1": "v"})
	if err != nil || len(found) != 1 {
		t.Errorf("eu has the details %v, %v", found, err)
	}
	must.Succeed(t, both.Jobs.ForgetJobDetails(t.Context(), "shop", "moves,"))
	keys, err := both.Rows.FindRows(t.Context(), store.AppRows{App: "shop", Table: store.TableJobs}, 9)
	if err != nil || len(keys) > 0 {
		t.Errorf("after all are forgotten: %q, %v", keys, err)
	}
	deleted := 0
	err = both.Rows.DeleteRows(t.Context(), store.AppRows{App: "shop", Table: store.TableUsers}, func(rows int, last string) error {
		if deleted += rows; last != "" {
			t.Errorf("the deletion says that it is at %q", last)
		}
		return nil
	})
	if err != nil || deleted != 13 {
		t.Errorf("%d rows are deleted, %v", deleted, err)
	}
}
