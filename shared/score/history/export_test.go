package history

import (
	"testing"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// OmitObjects makes the builder build blocks without a section of objects.
func (b *Builder) OmitObjects() { b.omit = true }

// Bound bounds what the vocabulary counts at a time.
func (v *Vocabulary) Bound(l Limits) { v.max = l }

// Counted returns the number of terms that the vocabulary counts, and their bytes.
func (v *Vocabulary) Counted() (terms, bytes int) { return len(v.terms), v.bytes }

// Parts are the bytes of blocks by what they hold.
type Parts struct{ Header, Kinds, Times, Facets, Postings, Values int }

// Add adds a block without a section of objects.
func (p *Parts) Add(tb testing.TB, block []byte) {
	tb.Helper()
	f, err := open(block)
	if err != nil {
		tb.Fatal(err)
	}
	p.Kinds += len(f.kinds) + len(f.indexes)
	p.Times += len(f.times)
	inPostings, inValues := 0, 0
	s := f.eachSection()
	for s.next() {
		for c := &s.body; c.next < len(c.b) && !c.damaged; {
			if f.format == Format1 {
				start := c.next
				c.text()
				inValues += c.next - start
				u := unpacked{times: make([]int64, f.events), values: make([]affinity.Count, 1)}
				start = c.next
				u.readPostings(c, func(uint32, int, int) bool { return true })
				inPostings += c.next - start
				continue
			}
			start := c.next
			head, n, next, _ := readHead(c.b, start)
			var l postings
			end, ok := l.read(c.b, next, head, f.events)
			if !ok {
				tb.Fatal("damaged")
			}
			inPostings += end - next
			inValues += next - start
			c.next = end
			for i := range n {
				if head>>groupShift == 0 {
					c.text()
				} else if i > 0 {
					c.unsigned()
				}
			}
			inValues += c.next - end
		}
	}
	facets := len(block) - f.sections.next - inPostings - inValues
	if f.format == Format1 {
		facets += len(f.facets.b) - f.facets.next
	}
	p.Postings += inPostings
	p.Values += inValues
	p.Facets += facets
	p.Header += len(block) - len(f.kinds) - len(f.indexes) - len(f.times) - facets - inPostings - inValues
}
