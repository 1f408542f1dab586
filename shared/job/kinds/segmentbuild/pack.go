package segmentbuild

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/store"
)

// groupRoom is how many users may still come before a part can end: a part ends best
// between the groups of a recompute, where the task may make a checkpoint.
const groupRoom = 512

// packing packs successive users into parts.
type packing struct {
	*task
	ctx    context.Context
	packer *segment.Packer
	writer *store.SegmentWriter
	part   segment.PartID
	cut    int64  // of all parts of the call
	from   string // where the current part begins
	split  bool   // a part has ended within the current group
	counts Counts
	faults []string
}

// pack packs the users of a range, whose profiles a recompute with these options computes
// or reads. It makes a checkpoint where a part ends: its rows are then written, and its
// description after them.
func (t *task) pack(ctx context.Context, users store.Range, o profile.RecomputeOptions,
	progress func(job.Progress) error) (job.Progress, error) {
	p := &packing{task: t, ctx: ctx, packer: segment.NewPacker(scoring(t.app), t.Affinities), cut: t.cut(),
		from: users.From}
	defer p.packer.Close()
	p.begin()
	var made job.Progress
	checkpoint := func(q profile.Progress) error {
		next := q.Next
		if q.Done {
			next = users.To
		}
		last := p.from
		if err := p.end(next); err != nil {
			return err
		}
		if !q.Done {
			last = next
		}
		made = job.Progress{Next: last, Done: q.Done, Counts: p.counted(q), Faults: p.firstFaults(q)}
		return progress(made)
	}
	o.Each = p.each
	end, err := t.Profiles.Recompute(ctx, t.app.For(consent.Segments), users, o,
		func(q profile.Progress) error {
			if !q.Done && !p.split && !p.full(min(groupRoom, t.PartUsers/2)) {
				return nil
			}
			return checkpoint(q)
		})
	if err == nil && !end.Done && end.Next != p.from { // the time is over
		err = checkpoint(end)
	}
	return made, err
}

// begin begins a part.
func (p *packing) begin() {
	p.part, p.split = p.newPart(), false
	p.packer.Begin(p.part, false, p.runner.Now().UnixMilli())
	p.writer = p.storeOf(p.app).Segments.NewSegmentWriter(p.ctx, p.app.ID, p.part)
}

// full reports whether the part takes fewer than room more users.
func (p *packing) full(room int) bool {
	return p.packer.FullAfter(room-1) || p.packer.Users() > 0 && p.packer.Users()+room > p.PartUsers
}

// each packs the profile of a user.
func (p *packing) each(user string, stored []byte) error {
	if p.full(1) {
		if err := p.end(user); err != nil {
			return err
		}
		p.split = true
	}
	if err := p.packer.Add(user, stored); err != nil {
		p.counts.Faulty++
		p.faults = append(p.faults, fmt.Sprintf("%s: %v", user, err))
		p.runner.Log.LogAttrs(p.ctx, slog.LevelError, "a profile is not packed", slog.String("app", p.app.ID),
			slog.String("user", user), slog.Any("error", err))
	}
	return nil
}

// end ends the part before a user, and begins the next one there.
func (p *packing) end(next string) error {
	part, err := p.packer.Finish(p.runner.Now().UnixMilli(), p.writer.Write)
	if err := errors.Join(err, p.writer.Flush()); err != nil {
		return err
	}
	part.Generation, part.From, part.To, part.Cut = p.params.Generation, p.from, next, p.cut
	if err := p.storeOf(p.app).Segments.WriteBuiltPart(p.ctx, p.app.ID, part); err != nil {
		return err
	}
	p.counts.Parts++
	p.counts.Packed += int64(part.Users)
	p.counts.Affinities += int64(part.Affinities)
	p.from = next
	p.begin()
	return nil
}

// counted returns the counts at a checkpoint.
func (p *packing) counted(q profile.Progress) job.Counts {
	c := p.counts
	c.Users, c.Computed = q.Users, q.Written
	c.Faulty += q.Faulty
	return job.Count(c)
}

func (p *packing) firstFaults(q profile.Progress) []string {
	all := append(q.Faults[:len(q.Faults):len(q.Faults)], p.faults...)
	return all[:min(len(all), job.MaxFaults)]
}
