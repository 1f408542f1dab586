package history

import "testing"

// Bound bounds what the vocabulary counts at a time.
func (v *Vocabulary) Bound(l Limits) { v.max = l }

// Counted returns the number of terms that the vocabulary counts, and their bytes.
func (v *Vocabulary) Counted() (terms, bytes int) { return len(v.terms), v.bytes }

// Parts are the bytes of blocks by what they hold.
type Parts struct{ Header, Kinds, Times, Facets, Postings, Values int }

// Add adds a block of events without objects.
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
		for c := &s.body; c.Next < len(c.B) && !c.Damaged; {
			start := c.Next
			head, n, next, _ := readHead(c.B, start)
			var l postings
			end, ok := l.read(c.B, next, head, f.events)
			if !ok {
				tb.Fatal("damaged")
			}
			inPostings += end - next
			inValues += next - start
			c.Next = end
			for i := range n {
				if head>>groupShift == 0 {
					c.Text()
				} else if i > 0 {
					c.Unsigned()
				}
			}
			inValues += c.Next - end
		}
	}
	facets := len(block) - f.sections.Next - inPostings - inValues
	p.Postings += inPostings
	p.Values += inValues
	p.Facets += facets
	p.Header += len(block) - len(f.kinds) - len(f.indexes) - len(f.times) - facets - inPostings - inValues
}
