package configdb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
)

type segmentDocument struct {
	Name  string    `firestore:"name"`
	Where string    `firestore:"where"`
	SetAt time.Time `firestore:"setAt"`
}

func (d segmentDocument) segment() config.SavedSegment {
	return config.SavedSegment{Name: d.Name, Where: d.Where, SetAt: d.SetAt.UTC()}
}

func (s *store) segments(appID string) *firestore.CollectionRef {
	return s.appRef(appID).Collection("savedSegments")
}

func (s *store) segmentRef(appID, name string) *firestore.DocumentRef {
	return s.segments(appID).Doc(documents.ID(name))
}

func (s *store) SavedSegment(ctx context.Context, appID, name string) (config.SavedSegment, error) {
	var d segmentDocument
	if err := read(ctx, s.segmentRef(appID, name), &d); err != nil {
		return config.SavedSegment{}, fmt.Errorf("read segment %q of app %q: %w", name, appID, err)
	}
	return d.segment(), nil
}

func (s *store) SavedSegments(ctx context.Context, appID string) ([]config.SavedSegment, error) {
	saved, err := segmentsOf(s.segments(appID).Documents(ctx))
	if err == nil && len(saved) == 0 {
		err = s.mustExist(ctx, appID)
	}
	if err != nil {
		return nil, fmt.Errorf("list the segments of app %q: %w", appID, err)
	}
	return saved, nil
}

func segmentsOf(documents *firestore.DocumentIterator) ([]config.SavedSegment, error) {
	snapshots, err := documents.GetAll()
	if err != nil {
		return nil, err
	}
	var saved []config.SavedSegment
	for _, snapshot := range snapshots {
		var d segmentDocument
		if err := snapshot.DataTo(&d); err != nil {
			return nil, fmt.Errorf("document %s: %w", snapshot.Ref.ID, err)
		}
		saved = append(saved, d.segment())
	}
	slices.SortFunc(saved, func(a, b config.SavedSegment) int { return cmp.Compare(a.Name, b.Name) })
	return saved, nil
}

// SaveSegment reads and writes in one transaction. The app's document is read in it
// too, so that nothing is added to an app that is being deleted.
func (s *store) SaveSegment(ctx context.Context, appID string, segment config.SavedSegment, create bool) (set config.SavedSegment, changed bool, err error) {
	err = s.client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		snapshot, err := tx.Get(s.appRef(appID))
		if err := into(new(appDocument), snapshot, err); err != nil {
			return err
		}
		saved, err := segmentsOf(tx.Documents(s.segments(appID)))
		if err != nil {
			return err
		}
		if set, changed, err = segment.Among(saved, create); err != nil || !changed {
			return err
		}
		return tx.Set(s.segmentRef(appID, segment.Name), segmentDocument(set))
	}, firestore.MaxAttempts(maxAttempts))
	if err != nil {
		return config.SavedSegment{}, false, fmt.Errorf("save segment %q of app %q: %w", segment.Name, appID, err)
	}
	return set, changed, nil
}

func (s *store) DeleteSegment(ctx context.Context, appID, name string) error {
	err := s.client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		ref := s.segmentRef(appID, name)
		snapshot, err := tx.Get(ref)
		if err := into(new(segmentDocument), snapshot, err); err != nil {
			return err
		}
		return tx.Delete(ref)
	}, firestore.MaxAttempts(maxAttempts))
	if err != nil {
		return fmt.Errorf("delete segment %q of app %q: %w", name, appID, err)
	}
	return nil
}

// SetSegments reads and writes in one transaction, so that turning segments on again
// keeps the time at which they were turned on.
func (s *store) SetSegments(ctx context.Context, appID string, on bool) error {
	err := s.client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		var d appDocument
		snapshot, err := tx.Get(s.appRef(appID))
		if err := into(&d, snapshot, err); err != nil {
			return err
		}
		if on == !d.SegmentsSince.IsZero() {
			return nil
		}
		var since any = firestore.Delete
		if on {
			since = firestore.ServerTimestamp
		}
		return tx.Update(s.appRef(appID), []firestore.Update{{Path: "segmentsSince", Value: since}, changedNow})
	}, firestore.MaxAttempts(maxAttempts))
	if err != nil {
		return fmt.Errorf("set segments of app %q: %w", appID, err)
	}
	return nil
}
