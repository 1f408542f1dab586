package config

import (
	"errors"
	"fmt"
	"time"
)

// Deletion is the end of an app. It is stored when the app ends, together with the
// app's removal, and is what remains of the app once nothing else holds its id.
type Deletion struct {
	// App is the id, which no app may have until ReusableFrom.
	App string `firestore:"id"`
	// Region is where the app lived, and the job that deletes it has its tasks; empty: in the
	// first one.
	Region string `firestore:"region,omitempty"`
	// StartedAt is when the app ended, by the store's clock.
	StartedAt time.Time `firestore:"startedAt"`
	// Attempt is the number of the job that deletes, from 1.
	Attempt int `firestore:"attempt"`
	// EndedAt is when a job found the id nowhere else, zero until then.
	EndedAt time.Time `firestore:"endedAt,omitempty"`
	// ReusableFrom is zero until EndedAt is set.
	ReusableFrom time.Time `firestore:"reusableFrom,omitempty"`
	// Rows is how many rows the last job deleted, without those that a task deleted
	// just before its process died.
	Rows int64 `firestore:"rows,omitempty"`
}

// Reserved is how long the id of a deleted app cannot be used again. It is longer
// than Pub/Sub keeps messages that nobody has acknowledged.
const Reserved = 30 * 24 * time.Hour

// Ended reports whether nothing but the Deletion holds the app's id.
func (d Deletion) Ended() bool { return !d.EndedAt.IsZero() }

// End ends the deletion: a job has deleted so many rows and found the id nowhere.
func (d *Deletion) End(now time.Time, rows int64) {
	d.EndedAt, d.Rows = Stamp(now), rows
	d.ReusableFrom = d.EndedAt.Add(Reserved)
}

// Again begins a further job.
func (d *Deletion) Again() {
	d.Attempt++
	d.EndedAt, d.ReusableFrom, d.Rows = time.Time{}, time.Time{}, 0
}

// Reusable returns an error if no app may have the id at that time. It is a
// deletedError.
func (d Deletion) Reusable(now time.Time) error {
	if d.Ended() && !now.Before(d.ReusableFrom) {
		return nil
	}
	return deletedError(d)
}

// deletedError says that an id belongs to a deleted app.
type deletedError Deletion

// Error says when the id can be used again.
func (e deletedError) Error() string {
	if e.EndedAt.IsZero() {
		return fmt.Sprintf("app %s is being deleted: its id can be used again %d days after that has ended", e.App,
			int(Reserved/(24*time.Hour)))
	}
	return fmt.Sprintf("app %s was deleted at %s: its id can be used again from %s", e.App,
		e.EndedAt.UTC().Format(time.RFC3339), e.ReusableFrom.UTC().Format(time.RFC3339))
}

// IsDeleted reports whether an error is a deletedError.
func IsDeleted(err error) bool {
	var deleted deletedError
	return errors.As(err, &deleted)
}

// normal returns the deletion with times in UTC.
func (d Deletion) normal() Deletion {
	for _, t := range []*time.Time{&d.StartedAt, &d.EndedAt, &d.ReusableFrom} {
		if !t.IsZero() {
			*t = Stamp(*t)
		}
	}
	return d
}

// With returns the deletion after change, as a Store writes it.
func (d Deletion) With(change func(*Deletion) error) (Deletion, error) {
	to := d
	if err := change(&to); err != nil {
		return Deletion{}, err
	}
	to.App = d.App
	return to.normal(), nil
}
