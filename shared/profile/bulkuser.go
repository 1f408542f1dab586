package profile

import (
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// bulkUser is a user of a group.
type bulkUser struct {
	user
	stale bool // the run computes the profile
	done  bool // the run has computed the profile

	scorer   *affinity.Scorer
	inline   *history.Block // nil: none
	unfolded int            // events outside the blocks
	events   int            // read from blocks
	missing  map[history.BlockID]bool
	restart  bool
	profile  []byte // of a known user, if RecomputeOptions.Each asks for it

	packs  bool    // the run packs the events of the log that it reads
	packer *packer // while it reads them; nil: none was read
	packed *packed // nil: none
}

// expect records that the group must read a block.
func (u *bulkUser) expect(id history.BlockID) {
	if u.missing == nil {
		u.missing = map[history.BlockID]bool{}
	}
	u.missing[id] = true
}

// forSurface makes a run for a surface, which gives each profile to its caller, compute what is not the stored one.
func (run *bulkRun) forSurface(u *bulkUser, gr *group) {
	if u.use == consent.All || u.fault != nil {
		return
	}
	if u.profile != nil {
		u.profile = nil
		gr.result.Known--
	}
	u.stale = u.use == consent.Part && run.options.Each != nil && u.row.Ticket > 0 && !u.row.Gone() &&
		u.row.Owner.State != store.Moved
}
