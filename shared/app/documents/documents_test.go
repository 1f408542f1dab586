package documents_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/app/documents/documentdb"
	"github.com/affinityengine/affinity/shared/local/configtest"
	"github.com/affinityengine/affinity/shared/local/gcloudtest"
	"github.com/affinityengine/affinity/shared/local/must"
)

func TestMemory(t *testing.T) {
	testStore(t, func(*testing.T) documents.Store { return documents.NewMemory() })
}

func TestStored(t *testing.T) {
	testStore(t, func(t *testing.T) documents.Store { return stored(t, configtest.Records{}) })
}

func TestFirestore(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", gcloudtest.Firestore(t))
	testStore(t, func(t *testing.T) documents.Store {
		client, err := firestore.NewClient(t.Context(), "affinity-"+strings.ToLower(rand.Text()))
		must.Succeed(t, err)
		must.CloseAtEnd(t, client)
		return documentdb.New(client)
	})
}

// full has a field of each kind.
type full struct {
	Text    string            `firestore:"text"`
	Whole   int               `firestore:"whole"`
	Decimal float64           `firestore:"decimal"`
	Is      bool              `firestore:"is"`
	At      time.Time         `firestore:"at"`
	Bytes   []byte            `firestore:"bytes"`
	List    []string          `firestore:"list"`
	Map     map[string]int64  `firestore:"map"`
	Texts   map[string]string `firestore:"texts,omitempty"`
	Part    part              `firestore:"part"`
	Pointer *part             `firestore:"pointer,omitempty"`
	Maybe   string            `firestore:"maybe,omitempty"`
	Until   time.Time         `firestore:"expiresAt,omitempty"`
	Hidden  string            `firestore:"-"`
	part
}

type part struct {
	N int64 `firestore:"n"`
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 123456789, time.UTC)

func filled() full {
	return full{
		Text: "größe / ~ \x00", Whole: -1 << 60, Decimal: 3, Is: true, At: noon, Bytes: []byte{0, 255}, List: []string{"b", "a"},
		Map: map[string]int64{"x.y": 1, "größe/": 2}, Part: part{3}, Pointer: &part{4}, Maybe: "yes", Hidden: "kept by no store", part: part{5},
	}
}

// testStore tests what the stores of both kinds promise.
func testStore(t *testing.T, open func(t *testing.T) documents.Store) {
	for name, test := range map[string]func(*testing.T, documents.Store){
		"Fields": testFields, "Update": testUpdate, "Conflicts": testConflicts, "Commit": testCommit, "Find": testFind, "Groups": testGroups, "Forget": testForget,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func create(t *testing.T, s documents.Store, path string, values ...any) {
	t.Helper()
	must.Succeed(t, s.Commit(t.Context(), documents.Create(path, values...)))
}

func read[T any](t *testing.T, s documents.Store, path string) (v T) {
	t.Helper()
	d, err := s.Get(t.Context(), path)
	if err == nil {
		err = d.Decode(&v)
	}
	must.Succeed(t, err)
	return v
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(full{})); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func testFields(t *testing.T, s documents.Store) {
	if _, err := s.Get(t.Context(), "apps/shop"); !errors.Is(err, documents.ErrNotFound) {
		t.Errorf("no document: %v", err)
	}
	create(t, s, "apps/shop", filled())
	want := filled()
	want.At, want.Hidden = noon.Truncate(time.Microsecond), ""
	same(t, "every field", read[full](t, s, "apps/shop"), want)
	create(t, s, "apps/shop/keys/k", struct {
		Text string `firestore:"text"`
	}{"own"}, part{7})
	same(t, "of two structs", read[full](t, s, "apps/shop/keys/k"), full{Text: "own", part: part{7}})
	create(t, s, "apps/empty", full{})
	same(t, "empty fields", read[full](t, s, "apps/empty"), full{Bytes: []byte{}})
	if err := s.Commit(t.Context(), documents.Create("apps/shop", part{})); !errors.Is(err, documents.ErrExists) {
		t.Errorf("created again: %v", err)
	}
	d, err := s.Get(t.Context(), "apps/shop")
	var wrong struct {
		Text int64 `firestore:"text"`
	}
	if err == nil && d.Decode(&wrong) == nil {
		t.Errorf("a text is read as the number %d", wrong.Text)
	}
}

func testUpdate(t *testing.T, s documents.Store) {
	create(t, s, "apps/shop", filled())
	keep := func(change full, err error) func(documents.Document) (documents.Fields, error) {
		return func(d documents.Document) (documents.Fields, error) {
			old := full{}
			if err := d.Decode(&old); err != nil {
				return nil, err
			}
			change.Whole = old.Whole + 1
			return documents.FieldsOf(change), err
		}
	}
	refused := errors.New("refused")
	if err := documents.Update(t.Context(), s, "apps/shop", keep(full{}, refused)); !errors.Is(err, refused) {
		t.Errorf("a change that fails: %v", err)
	}
	must.Succeed(t, documents.Update(t.Context(), s, "apps/shop", keep(full{At: noon, part: part{9}}, nil)))
	same(t, "changed", read[full](t, s, "apps/shop"), full{Bytes: []byte{}, Whole: -1<<60 + 1, At: noon.Truncate(time.Microsecond), part: part{9}})
	n, err := s.Count(t.Context(), documents.Query{Collection: "apps", OrderBy: "maybe"})
	if n != 0 || err != nil {
		t.Errorf("%d documents have the removed field, error %v", n, err)
	}
	if err := documents.Update(t.Context(), s, "apps/other", keep(full{}, nil)); !errors.Is(err, documents.ErrNotFound) {
		t.Errorf("no document: %v", err)
	}
	if err := documents.Update(t.Context(), s, "apps/shop", func(documents.Document) (documents.Fields, error) { return nil, nil }); err != nil {
		t.Errorf("no change: %v", err)
	}
}

// Each of many changes at once is made to the document of the one before. A change may use the
// store, and what it overtakes is tried again.
func testConflicts(t *testing.T, s documents.Store) {
	create(t, s, "apps/shop", part{})
	count := func(d documents.Document) (documents.Fields, error) {
		var p part
		err := d.Decode(&p)
		return documents.Fields{"n": p.N + 1}, err
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if err := documents.Update(t.Context(), s, "apps/shop", count); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	tries := 0
	err := documents.Update(t.Context(), s, "apps/shop", func(d documents.Document) (documents.Fields, error) {
		if tries++; tries == 1 {
			if err := documents.Update(t.Context(), s, "apps/shop", count); err != nil {
				return nil, err
			}
		}
		return count(d)
	})
	if got := read[part](t, s, "apps/shop"); got.N != 10 || tries != 2 || err != nil {
		t.Errorf("counted %d in %d tries, error %v; want 10 in 2", got.N, tries, err)
	}
}

// Several writes happen together or not at all.
func testCommit(t *testing.T, s documents.Store) {
	create(t, s, "apps/shop", part{1})
	create(t, s, "apps/shop/keys/a", part{2})
	get := func(path string) documents.Document {
		t.Helper()
		d, err := s.Get(t.Context(), path)
		must.Succeed(t, err)
		return d
	}
	shop, key := get("apps/shop"), get("apps/shop/keys/a")
	if err := s.Commit(t.Context(), documents.Change(shop, documents.Fields{"n": 3}), documents.Create("apps/shop/keys/a", part{})); !errors.Is(err, documents.ErrExists) {
		t.Errorf("create what exists: %v", err)
	}
	before := time.Now().Add(-time.Minute)
	err := s.Commit(t.Context(), documents.Change(shop, documents.Fields{"n": 4, "at": documents.Now}), documents.Put("apps/shop/keys/a", struct {
		Text string    `firestore:"text"`
		At   time.Time `firestore:"at,serverTimestamp"`
	}{Text: "put"}), documents.Put("apps/shop/keys/b", part{5}))
	must.Succeed(t, err)
	if got := read[full](t, s, "apps/shop"); got.N != 4 || got.At.Before(before) {
		t.Errorf("changed to %+v, want 4 and the time of now", got)
	}
	if got := read[full](t, s, "apps/shop/keys/a"); got.N != 0 || got.Text != "put" || got.At.Before(before) {
		t.Errorf("put as %+v, want nothing of what was there, and the time of now", got)
	}
	for what, w := range map[string]documents.Write{
		"change what has changed": documents.Change(shop, documents.Fields{"n": 9}),
		"delete what has changed": documents.Delete(key),
	} {
		if err := s.Commit(t.Context(), documents.Put("apps/other", part{}), w); !errors.Is(err, documents.ErrOvertaken) {
			t.Errorf("%s: %v", what, err)
		}
	}
	shop, b := get("apps/shop"), get("apps/shop/keys/b")
	must.Succeed(t, s.Commit(t.Context(), documents.Delete(b), documents.Delete(shop)))
	for what, w := range map[string]documents.Write{
		"change what is gone": documents.Change(shop, documents.Fields{"n": 9}),
		"delete what is gone": documents.Delete(b),
		"miss what is there":  documents.Absent("apps/shop/keys/a"),
	} {
		if err := s.Commit(t.Context(), documents.Put("apps/other", part{}), w); !errors.Is(err, documents.ErrOvertaken) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n, err := s.Count(t.Context(), documents.Query{Collection: "apps"}); n != 0 || err != nil {
		t.Errorf("%d documents are left, error %v", n, err)
	}
	if err := s.Commit(t.Context(), documents.Create("apps/other", part{}), documents.Absent("apps/shop")); err != nil {
		t.Errorf("miss what is gone: %v", err)
	}
}

func testFind(t *testing.T, s documents.Store) {
	type item struct {
		Name string           `firestore:"name"`
		At   time.Time        `firestore:"at"`
		Sums map[string]int64 `firestore:"sums"`
		Rank int              `firestore:"rank,omitempty"`
	}
	for i, name := range []string{"c", "a", "d", "b"} {
		create(t, s, "apps/shop/items/"+name, item{name, noon.Add(time.Duration(i/2) * time.Hour), map[string]int64{"x": int64(i)}, i})
	}
	create(t, s, "apps/other/items/e", item{Name: "e"})
	for _, c := range []struct {
		q    documents.Query
		want string
	}{
		{documents.Query{}, "abcd"},
		{documents.Query{OrderBy: "at"}, "acbd"},
		{documents.Query{OrderBy: "at", Descending: true}, "dbca"},
		{documents.Query{OrderBy: "at", Descending: true, Limit: 3}, "dbc"},
		{documents.Query{OrderBy: "rank"}, "adb"},
		{documents.Query{Limit: 9, Where: []documents.Condition{{"name", documents.In, []string{"a", "b", "x"}}}}, "ab"},
		{documents.Query{Where: []documents.Condition{{"name", documents.Equal, "c"}}}, "c"},
		{documents.Query{Where: []documents.Condition{{"sums.x", documents.Greater, 1}}}, "db"},
		{documents.Query{Where: []documents.Condition{{"at", documents.Less, noon.Add(time.Minute)}}}, "ac"},
		{documents.Query{Where: []documents.Condition{{"absent", documents.Less, 5}}}, ""},
		{documents.Query{Where: []documents.Condition{{"name", documents.Less, 5}}}, ""},
	} {
		c.q.Collection = "apps/shop/items"
		found, err := s.Find(t.Context(), c.q)
		var got string
		for _, d := range found {
			var i item
			if err := d.Decode(&i); err != nil || d.Path != c.q.Collection+"/"+i.Name {
				t.Errorf("document %s: %+v, error %v", d.Path, i, err)
			}
			got += i.Name
		}
		if got != c.want && !(c.q.OrderBy == "" && sorted(got) == sorted(c.want)) || err != nil {
			t.Errorf("%+v finds %q, error %v; want %q", c.q, got, err, c.want)
		}
		if n, err := s.Count(t.Context(), c.q); n != len(c.want) || err != nil {
			t.Errorf("%+v counts %d, error %v", c.q, n, err)
		}
	}
	only, err := s.Find(t.Context(), documents.Query{Collection: "apps/shop/items", OrderBy: "rank", Only: []string{"name", "sums"}})
	var first item
	if err == nil {
		err = only[0].Decode(&first)
	}
	same(t, "some fields", first, item{Name: "a", Sums: map[string]int64{"x": 1}})
	if err != nil {
		t.Error(err)
	}
	for field, want := range map[string]int64{"sums.x": 6, "rank": 6, "absent": 0, "sums.absent": 0} {
		if sum, err := s.Sum(t.Context(), documents.Query{Collection: "apps/shop/items"}, field); sum != want || err != nil {
			t.Errorf("%s add up to %d, error %v; want %d", field, sum, err, want)
		}
	}
}

func sorted(s string) string {
	letters := strings.Split(s, "")
	slices.Sort(letters)
	return strings.Join(letters, "")
}

func testGroups(t *testing.T, s documents.Store) {
	for _, path := range []string{"apps/a/jobs/1", "apps/b/jobs/1", "apps/b/jobs/2", "apps/b/nojobs/1", "deletions/a/jobs/1/jobs/1"} {
		create(t, s, path, part{})
	}
	if n, err := s.Count(t.Context(), documents.Query{Collection: "jobs", All: true}); n != 4 || err != nil {
		t.Errorf("%d documents of all apps, error %v; want 4", n, err)
	}
}

func testForget(t *testing.T, s documents.Store) {
	for _, app := range []string{"shop", "shop-"} {
		create(t, s, "apps/"+app, part{})
		for n := range 3 {
			create(t, s, fmt.Sprintf("apps/%s/jobs/%d", app, n), part{})
			create(t, s, fmt.Sprintf("apps/%s/jobs/%d/shards/0", app, n), part{})
			create(t, s, fmt.Sprintf("apps/%s/later/gone/deeper/%d", app, n), part{})
		}
	}
	below := func(path string, want ...string) {
		t.Helper()
		got, err := s.Below(t.Context(), path)
		if slices.Sort(got); !slices.Equal(got, want) || err != nil {
			t.Errorf("below %s lie %q, error %v; want %q", path, got, err, want)
		}
	}
	below("apps/shop", "jobs", "later")
	below("apps/shop/jobs/1", "shards")
	for range 2 {
		must.Succeed(t, s.Forget(t.Context(), "apps/shop/jobs", "apps/shop/later"))
	}
	below("apps/shop")
	below("apps/shop/jobs/1")
	read[part](t, s, "apps/shop")
	below("apps/shop-", "jobs", "later")
	read[part](t, s, "apps/shop-/jobs/1/shards/0")
}
