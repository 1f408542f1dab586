package main

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// table reads rows of CSV by the names of their columns.
type table struct {
	rows    *csv.Reader
	columns map[string]int
	row     []string
}

// newTable reads the line of names, which must have these.
func newTable(in io.Reader, delimiter rune, names ...string) (*table, error) {
	buffered := bufio.NewReader(in)
	if bom, err := buffered.Peek(3); err == nil && string(bom) == "\ufeff" {
		_, _ = buffered.Discard(len(bom)) // was read
	}
	t := &table{rows: csv.NewReader(buffered), columns: map[string]int{}}
	t.rows.Comma, t.rows.ReuseRecord = delimiter, true
	head, err := t.rows.Read()
	if err != nil {
		return nil, fmt.Errorf("read the names of the columns: %w", err)
	}
	for at, name := range head {
		t.columns[strings.ToLower(strings.TrimSpace(name))] = at
	}
	for _, name := range names {
		if _, ok := t.columns[name]; !ok {
			return nil, fmt.Errorf("no column %q: the columns are %s", name, strings.Join(head, ", "))
		}
	}
	return t, nil
}

// next reads a row. It reports false at the end.
func (t *table) next() (bool, error) {
	var err error
	t.row, err = t.rows.Read()
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil, err
}

func (t *table) cell(name string) string { return strings.TrimSpace(t.row[t.columns[name]]) }

// fault says what is wrong with the row.
func (t *table) fault(name string) error {
	line, _ := t.rows.FieldPos(t.columns[name])
	return fmt.Errorf("line %d: %s is %q", line, name, t.cell(name))
}

// counts count texts.
type counts struct {
	of    map[string]int
	order []string // of the first time
}

func (c *counts) add(text string) {
	if c.of == nil {
		c.of = map[string]int{}
	}
	if c.of[text] == 0 {
		c.order = append(c.order, text)
	}
	c.of[text]++
}

// most returns the most frequent text, the first one of equal ones.
func (c *counts) most() string {
	return slices.MaxFunc(c.order, func(a, b string) int {
		return cmp.Or(cmp.Compare(c.of[a], c.of[b]), cmp.Compare(slices.Index(c.order, b), slices.Index(c.order, a)))
	})
}
