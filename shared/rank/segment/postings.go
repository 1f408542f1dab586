package segment

import (
	"encoding/binary"
	"sync"
)

// postings are the affinities of a part while it is packed. They are collected in the order
// of users, in blocks. A full block is ordered by filter, so that the postings of a filter
// are a stretch of each block. Blocks are of a size at which the processor's cache holds
// what ordering one writes. They serve the next part again.
//
// A posting is its keys by half-life, in 6 bytes each, and the user's ordinal, in 2, all
// little-endian. Until the block is ordered, the number of the filter precedes, in 4 bytes.
type postings struct {
	size   int // of a posting, in bytes
	user   []byte
	blocks []block
	used   int    // blocks
	spare  []byte // takes the postings of the next block that is ordered
	counts []int  // postings of the part, by number
	count  int    // of all
}

// block is some postings of successive users.
type block struct {
	b        []byte
	maxBytes int
	ends     []uint32 // once it is ordered: by number, where the postings of the filter end
}

const (
	numberBytes = 4
	// A block has blockBytes, or blockShare postings for each filter so far, so that the
	// ends take little memory beside the postings.
	blockBytes = 8 << 20
	blockShare = 4
)

// spare holds the memory of packers that are closed.
var spare = sync.Pool{New: func() any { return new(postings) }}

func (p *postings) begin(halfLives int) {
	p.size, p.used, p.count, p.counts = keyBytes*halfLives+2, 0, 0, p.counts[:0]
}

// beginUser begins a user. Until addUser, nothing of the user is in the part.
func (p *postings) beginUser() { p.user = p.user[:0] }

// add adds an affinity of the user: its filter, and its key under each half-life.
func (p *postings) add(number uint32, ordinal uint16, keys []uint64) {
	at := len(p.user)
	p.user = append(p.user, make([]byte, numberBytes+p.size)...)
	b := p.user[at:]
	binary.LittleEndian.PutUint32(b, number)
	b = b[numberBytes:]
	last := len(keys) - 1
	for i, key := range keys[:last] {
		binary.LittleEndian.PutUint64(b[i*keyBytes:], key) // the next one takes the upper bytes
	}
	binary.LittleEndian.PutUint64(b[last*keyBytes:], keys[last]|uint64(ordinal)<<48)
}

// addUser puts the user in the part. It reports whether they have affinities.
func (p *postings) addUser() bool {
	each := numberBytes + p.size
	p.count += len(p.user) / each
	for at := 0; at < len(p.user); at += each {
		number := binary.LittleEndian.Uint32(p.user[at:])
		for int(number) >= len(p.counts) {
			p.counts = append(p.counts, 0)
		}
		p.counts[number]++
	}
	for rest := p.user; len(rest) > 0; {
		if p.used == 0 || len(p.blocks[p.used-1].b) == p.blocks[p.used-1].maxBytes {
			p.nextBlock()
		}
		k := &p.blocks[p.used-1]
		n := min(len(rest), k.maxBytes-len(k.b))
		k.b, rest = append(k.b, rest[:n]...), rest[n:]
	}
	return len(p.user) > 0
}

// nextBlock orders the last block and begins another one.
func (p *postings) nextBlock() {
	p.order()
	if p.used == len(p.blocks) {
		p.blocks = append(p.blocks, block{})
	}
	k, each := &p.blocks[p.used], numberBytes+p.size
	k.maxBytes = max(blockBytes/each, blockShare*len(p.counts)) * each
	if cap(k.b) < k.maxBytes {
		k.b = make([]byte, 0, k.maxBytes)
	}
	k.b, k.ends = k.b[:0], k.ends[:0]
	p.used++
}

// order orders the last block by the numbers of the filters.
func (p *postings) order() {
	if p.used == 0 {
		return
	}
	k, each := &p.blocks[p.used-1], numberBytes+p.size
	k.ends = append(k.ends[:0], make([]uint32, len(p.counts))...)
	for at := 0; at < len(k.b); at += each {
		k.ends[binary.LittleEndian.Uint32(k.b[at:])]++
	}
	from := uint32(0)
	for n, count := range k.ends {
		k.ends[n], from = from, from+count*uint32(p.size)
	}
	if cap(p.spare) < cap(k.b) {
		p.spare = make([]byte, 0, cap(k.b))
	}
	to := p.spare[:from]
	for at := 0; at < len(k.b); at += each {
		end := &k.ends[binary.LittleEndian.Uint32(k.b[at:])]
		p.copy(to[*end:], k.b[at+numberBytes:])
		*end += uint32(p.size)
	}
	k.b, p.spare = to, k.b[:0]
}

// copy copies a posting, in words that may overlap: it has 8 bytes or more.
func (p *postings) copy(to, from []byte) {
	last := p.size - 8
	for i := 0; i < last; i += 8 {
		binary.LittleEndian.PutUint64(to[i:], binary.LittleEndian.Uint64(from[i:]))
	}
	binary.LittleEndian.PutUint64(to[last:], binary.LittleEndian.Uint64(from[last:]))
}

// of returns the postings of a number in the block, once it is ordered.
func (k *block) of(number int) []byte {
	if number >= len(k.ends) {
		return nil // its first user came later
	}
	from := uint32(0)
	if number > 0 {
		from = k.ends[number-1]
	}
	return k.b[from:k.ends[number]]
}

// columns are the postings of a filter.
type columns struct {
	ordinals []uint16
	keys     [][]uint64 // by half-life
}

// read reads the postings of a number into columns, whose memory it uses again. The last
// block must be ordered.
func (p *postings) read(number int, c *columns) {
	n, halfLives := p.counts[number], p.size/keyBytes
	if cap(c.ordinals) < n || len(c.keys) != halfLives {
		c.ordinals, c.keys = make([]uint16, 2*n), make([][]uint64, halfLives)
		for i := range c.keys {
			c.keys[i] = make([]uint64, 2*n)
		}
	}
	c.ordinals = c.ordinals[:n]
	for i := range c.keys {
		c.keys[i] = c.keys[i][:n]
	}
	done := 0
	for i := range p.blocks[:p.used] {
		b := p.blocks[i].of(number)
		some := len(b) / p.size
		for i := range c.keys {
			keys := c.keys[i][done : done+some]
			for j, at := 0, i*keyBytes; j < len(keys); j, at = j+1, at+p.size {
				keys[j] = binary.LittleEndian.Uint64(b[at:]) & (1<<(8*keyBytes) - 1)
			}
		}
		ordinals := c.ordinals[done : done+some]
		for j, at := 0, p.size-2; j < len(ordinals); j, at = j+1, at+p.size {
			ordinals[j] = binary.LittleEndian.Uint16(b[at:])
		}
		done += some
	}
}
