package documents_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/local/configtest"
	"github.com/affinityengine/affinity/shared/local/must"
)

func stored(t *testing.T, r documents.Records) *documents.Memory {
	t.Helper()
	m, err := documents.NewStored(r)
	must.Succeed(t, err)
	return m
}

// A later process reads what was written, with the same types, and not what has expired.
func TestStoredDocumentsOutliveTheProcess(t *testing.T) {
	records := configtest.Records{}
	first := stored(t, records)
	create(t, first, "apps/shop", filled())
	expired := filled()
	expired.Until = time.Now().Add(-time.Hour)
	create(t, first, "apps/expired", expired)
	create(t, first, "apps/gone/keys/k", part{})
	must.Succeed(t, first.Forget(t.Context(), "apps/gone/keys"))
	second := stored(t, records)
	same(t, "after a restart", read[full](t, second, "apps/shop"), read[full](t, first, "apps/shop"))
	if all, err := second.Find(t.Context(), documents.Query{Collection: "apps"}); len(all) != 1 || err != nil || len(records) != 1 {
		t.Errorf("%d documents and %d records are left, error %v; want one", len(all), len(records), err)
	}
}

// fullRecords fail to save, as a full disk does.
type fullRecords struct{ configtest.Records }

var errFull = errors.New("no space")

func (fullRecords) Save(...documents.Record) error { return errFull }

func TestWhatIsNotSavedIsNotChanged(t *testing.T) {
	records := configtest.Records{}
	create(t, stored(t, records), "apps/shop", part{1})
	s := stored(t, fullRecords{records})
	for what, err := range map[string]error{
		"create": s.Commit(t.Context(), documents.Create("apps/new", part{})),
		"update": documents.Update(t.Context(), s, "apps/shop", func(documents.Document) (documents.Fields, error) { return documents.Fields{"n": 2}, nil }),
		"forget": s.Forget(t.Context(), "apps"),
	} {
		if !errors.Is(err, errFull) {
			t.Errorf("%s: %v, want %v", what, err, errFull)
		}
	}
	if all, err := s.Find(context.Background(), documents.Query{Collection: "apps"}); len(all) != 1 || err != nil || read[part](t, s, "apps/shop").N != 1 {
		t.Errorf("%d documents, error %v; want the one of before", len(all), err)
	}
}
