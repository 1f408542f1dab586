package export

import (
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// NewDeletion returns the line that says which events of a user do not count: those that t
// covers, and those of the types that the user has opted out of.
func NewDeletion(user string, t affinity.Tombstone, types event.Types) api.ExportLine {
	return api.ExportLine{Deletion: &api.ExportedDeletion{
		UserToken: user, DeletedUntil: api.AtMillis(t.DeletedUntil),
		ReceivedUntil: api.AtMillis(max(t.ReceivedUntil, t.DeletedUntil)), OptedOut: types.List(),
	}}
}

// Deletion returns what a line says that is imported now. The errors say what is wrong
// with the line.
func Deletion(d *api.ExportedDeletion, now time.Time) (affinity.Tombstone, event.Types, error) {
	t := affinity.Tombstone{DeletedUntil: d.DeletedUntil.UnixMilli(), ReceivedUntil: d.ReceivedUntil.UnixMilli()}
	types, ok := event.TypesOf(d.OptedOut...)
	latest := now.Add(event.MaxAhead).UnixMilli()
	switch {
	case !event.ValidUserToken(d.UserToken):
		return t, 0, fault.New(fault.Invalid, "The userToken of an exported deletion is none")
	case !ok:
		return t, 0, fault.New(fault.Invalid, "A user can opt out of view, click and conversion")
	case t.DeletedUntil <= 0 || t.ReceivedUntil < t.DeletedUntil || t.ReceivedUntil > latest:
		return t, 0, fault.New(fault.Invalid, "An exported deletion must have times from 1970 until now, and must "+
			"not end before deletedUntil by receipt")
	}
	return t, types, nil
}
