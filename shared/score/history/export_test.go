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
		for c := &s.body; c.next < len(c.b) && !c.damaged; {
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
	p.Postings += inPostings
	p.Values += inValues
	p.Facets += facets
	p.Header += len(block) - len(f.kinds) - len(f.indexes) - len(f.times) - facets - inPostings - inValues
}
