package cache

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/deadline"
)

const (
	// atOnce is how many writes of WriteEach run at a time.
	atOnce = 8
	// maxDoubled is how often the time between two writes doubles while they fail.
	maxDoubled = 5
)

// WriterOptions say what a Writer writes, and when.
type WriterOptions struct {
	What string // that is collected, for errors
	// Every is the time between two writes. What comes after it is written at once. While
	// writes fail, the time doubles, up to 32 times.
	Every time.Duration
	// Longest ends a write in the background.
	Longest time.Duration
	// Write writes what waits. What it cannot write it may let wait again.
	Write func(context.Context) error
	// Waits reports whether something waits. The Writer calls it while it holds a lock, so
	// its callers hold none of their own when they call Add.
	Waits func() bool
	// Failed learns why a write in the background failed. nil: nobody does.
	Failed func(context.Context, error)
	Now    func() time.Time
	// After begins a function later. nil: time.AfterFunc.
	After func(time.Duration, func())
}

// Writer writes what a process collects in its memory some time after it came: so no request
// waits for the write, and many requests share one. Its callers hold what waits. It writes at most
// once in a period, and one write at a time. It is safe for concurrent use.
type Writer struct {
	WriterOptions
	writing chan struct{} // holds a value during a write

	mu    sync.Mutex
	due   bool // a write will begin, or runs
	fails int  // writes that failed, since one did not
	began time.Time
}

// NewWriter returns a Writer that begins nothing before the first Add.
func NewWriter(o WriterOptions) *Writer {
	return &Writer{WriterOptions: o, writing: make(chan struct{}, 1)}
}

// Add says that something waits. A write of it begins within Every.
func (w *Writer) Add() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.due {
		w.later(max(0, w.Every-w.Now().Sub(w.began)))
	}
}

// later arranges the next write. The caller holds mu.
func (w *Writer) later(d time.Duration) {
	w.due = true
	if w.After == nil {
		time.AfterFunc(d, w.run)
		return
	}
	w.After(d, w.run)
}

// run writes in the background, and arranges the next write if something waits.
func (w *Writer) run() {
	ctx, cancel := deadline.Begin(context.Background(), w.Longest)
	defer cancel()
	w.mu.Lock()
	w.began = w.Now()
	w.mu.Unlock()
	err := w.Flush(ctx)
	if err != nil && w.Failed != nil {
		w.Failed(ctx, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.due = false
	if w.fails++; err == nil {
		w.fails = 0
	}
	if w.Waits() {
		w.later(w.Every << min(w.fails, maxDoubled))
	}
}

// Flush writes now, after a write that is under way.
func (w *Writer) Flush(ctx context.Context) error {
	select {
	case w.writing <- struct{}{}:
		defer func() { <-w.writing }()
	case <-ctx.Done():
		return fmt.Errorf("write %s: %w", w.What, ctx.Err())
	}
	err := w.Write(ctx)
	if w.Waits() {
		w.Add()
	}
	return err
}

// WriteEach writes parts of what waits, some at a time, whether others fail or not. The error has
// the number of those that failed, and wraps the first.
func WriteEach[K comparable, V any](parts map[K]V, write func(K, V) error) error {
	var mu sync.Mutex
	var first error
	var failed int
	var g errgroup.Group
	g.SetLimit(atOnce)
	for k, v := range parts {
		g.Go(func() error {
			if err := write(k, v); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed++
				first = cmp.Or(first, err)
			}
			return nil
		})
	}
	_ = g.Wait()
	if failed > 0 {
		return fmt.Errorf("%d of %d writes failed: %w", failed, len(parts), first)
	}
	return nil
}
