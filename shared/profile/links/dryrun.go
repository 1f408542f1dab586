package links

import (
	"iter"
	"maps"
	"slices"
	"time"
)

// DryRun links tokens in memory by the evidence of events, as an engine does that has never seen the tokens
// and deletes nobody. It is not safe for concurrent use.
type DryRun struct {
	// Evidence counts the evidence of other users than the token itself.
	Evidence int64
	// Refused is the evidence that made no link, by reason.
	Refused map[Reason]Refusals

	lookback int64 // ms
	cells    map[string]*Cell
}

// Refusals count refused evidence, and name the tokens of the first.
type Refusals struct {
	Count       int64
	User, Known string
}

// NewDryRun returns a run without links, whose links begin at most lookback before their evidence.
func NewDryRun(lookback time.Duration) *DryRun {
	return &DryRun{Refused: map[Reason]Refusals{}, lookback: lookback.Milliseconds(), cells: map[string]*Cell{}}
}

// Take takes the evidence of an event under a token. It returns why the evidence makes no link, or "" if it
// does, or need not, because the tokens are linked already or are equal. It counts. Evidence comes
// in the order of its times.
func (d *DryRun) Take(token string, e Evidence) Reason {
	reason := d.take(token, e)
	if e.Known == token {
		return reason
	}
	d.Evidence++
	if reason != "" {
		r := d.Refused[reason]
		if r.Count++; r.Count == 1 {
			r.User, r.Known = token, e.Known
		}
		d.Refused[reason] = r
	}
	return reason
}

func (d *DryRun) take(token string, e Evidence) Reason {
	if NamesNobody(token) || NamesNobody(e.Known) {
		return BadValue
	}
	cell := d.cell(token)
	if e.Known == token {
		if cell.Role == None {
			cell.Role = Known
		}
		return ""
	}
	asks, reason := cell.Asks(e, Exclusion{}, Exclusion{})
	if reason == Shared {
		*cell, _ = cell.Shut("", e.Time)
	}
	if !asks {
		return reason
	}
	known := d.cell(e.Known)
	if reason = known.Admits(token, e, Exclusion{}); reason != "" {
		return reason
	}
	if known.Lacks(token, e) {
		next := known.Admit(token, e)
		for _, l := range next.ShutSince(*known) {
			of := d.cell(l.Token)
			*of, _ = of.Shut(e.Known, l.Shut)
		}
		*known = next
	}
	*cell = cell.Link(e, Exclusion{}, Exclusion{}, d.lookback)
	return ""
}

func (d *DryRun) cell(token string) *Cell {
	cell := d.cells[token]
	if cell == nil {
		cell = &Cell{}
		d.cells[token] = cell
	}
	return cell
}

// Linked returns the tokens that have been linked, in order, with their entries.
func (d *DryRun) Linked() iter.Seq2[string, []Entry] {
	return func(yield func(string, []Entry) bool) {
		for _, token := range slices.Sorted(maps.Keys(d.cells)) {
			if entries := d.cells[token].Entries; len(entries) > 0 && !yield(token, entries) {
				return
			}
		}
	}
}
