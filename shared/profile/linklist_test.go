package profile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/store"
)

// A page looks at so many rows: it may be short or empty, and the pages together have every link once.
func TestListLinks(t *testing.T) {
	s := newLinked(t, storetest.NewWithClient)
	var want []string
	for _, user := range strings.Split("abcdefgh", "") {
		token := user
		if slices.Contains([]string{"b", "f", "g"}, user) {
			s.apply(s.of(token, 1, "ann"), s.of(token, 2, ""))
			want = append(want, token)
		} else {
			s.apply(s.of(token, 1, ""))
		}
	}
	for rows := 1; rows < 11; rows++ {
		for limit := 1; limit < 4; limit++ {
			var got []string
			pages, empty := 0, 0
			for after := ""; ; pages++ {
				page, err := profile.IdentitiesOf(s.eng).ListLinks(ctx, s.app(), after, rows, limit, func(*links.Entry) bool { return true })
				must.Succeed(t, err)
				if len(page.Links) > limit {
					t.Fatalf("%d links of tokens of one each, want %d at most", len(page.Links), limit)
				}
				for _, l := range page.Links {
					got = append(got, l.Token)
				}
				if page.Next == "" {
					break
				}
				if len(page.Links) == 0 {
					empty++
				}
				after = page.Next
			}
			if !slices.Equal(got, want) || rows == 1 && (pages != 9 || empty != 6) {
				t.Errorf("%d rows, %d links a page: %q of %d pages, %d empty, want %q", rows, limit, got, pages, empty, want)
			}
		}
	}
	s.set(store.TableUsers, appID+",b,", "u", "i", s.clock)
	page, err := profile.IdentitiesOf(s.eng).ListLinks(ctx, s.app(), "", 100, 100, func(*links.Entry) bool { return true })
	must.Succeed(t, err)
	if len(page.Links) != 2 || !slices.Equal(page.Faulty, []string{"b"}) {
		t.Errorf("links of a faulty row: %d links, faulty %q", len(page.Links), page.Faulty)
	}
}
