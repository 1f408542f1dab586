// Package differ compares an engine with a model of it. It starts the engine as a process with a
// data folder, drives it over HTTP with random operations of a seed, kills it, starts it again, and
// compares what it answers with a model written from the formula of scores alone.
//
// The package imports nothing of the engine, so that no fault of it is in the model too; a test
// holds that. All data lies in a temporary folder, which stays if there is a difference.
package differ

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Options configure a campaign.
type Options struct {
	// Engine is the program `affinity`, and Environment what it gets besides the environment of this
	// process, of which it gets no variable of Affinity.
	Engine      string
	Environment []string
	// Seed determines the operations. The moments of kills are not part of it.
	Seed uint64
	// For is how long to go on. An episode begins with an empty engine and has a seed of its own: Seed,
	// Seed + 1 and so on. 0: until Steps.
	For time.Duration
	// Steps is how many operations each app of an episode has. If For is 0 there is one episode.
	Steps int
	// Keep is a folder for the data of all episodes. "": a temporary folder, which goes unless there is a
	// difference.
	Keep string
	// Memory is how much resident memory the engine may take, in bytes.
	Memory int64
	// Progress gets a line now and then; nil: nobody does.
	Progress func(string)
}

const (
	// DefaultSteps is the length of an episode: long enough for several strategies, and for kills
	// between all kinds of operations.
	DefaultSteps = 300
	// DefaultMemory is six times what the engine of an episode takes.
	DefaultMemory = 1 << 30

	// apps live at the same time, so that one sends while another waits for the engine.
	apps = 3
	// copies is into how many empty apps the data of one app may be copied.
	copies = 4
	// round is how many steps lie between two checkpoints.
	round = 50
	// killEvery is how many steps of all apps lie between two ends of the engine, about.
	killEvery = 90
)

// Run runs a campaign and writes what it compared. It returns a *Difference if the engine and the model
// differ.
func Run(ctx context.Context, out io.Writer, o Options) error {
	if o.Steps == 0 {
		o.Steps = DefaultSteps
	}
	if o.Memory == 0 {
		o.Memory = DefaultMemory
	}
	t := newTally()
	began := time.Now()
	fmt.Fprintf(out, "seed %d\n", o.Seed)
	episodes := 0
	for {
		err := episode(ctx, o, o.Seed+uint64(episodes), began, t)
		episodes++
		if err != nil || ctx.Err() != nil || o.For == 0 || time.Since(began) >= o.For {
			fmt.Fprintf(out, "%d episodes, %v\n", episodes, time.Since(began).Round(time.Second))
			t.print(out)
			if err != nil {
				fmt.Fprintln(out, err)
			}
			return errors.Join(err, ctx.Err())
		}
	}
}

// episode drives one engine from an empty folder on.
func episode(ctx context.Context, o Options, seed uint64, began time.Time, t *tally) (err error) {
	folder := ""
	if o.Keep != "" {
		folder = filepath.Join(o.Keep, fmt.Sprint("seed-", seed))
		err = os.MkdirAll(folder, 0o700)
	} else {
		folder, err = os.MkdirTemp("", "affinity-differ-")
	}
	if err != nil {
		return fmt.Errorf("make a folder for the engine: %w", err)
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(errDone)
	r := rand.New(rand.NewPCG(seed, 0))
	args := []string{"--schema", pick(r, []string{"wide", "narrow"})}
	retention := pick(r, []int{0, 7, 90})
	args = append(args, "--retention-days", fmt.Sprint(retention))
	const key = "differ-key-0123456789"
	var names []string
	for n := range apps {
		names = append(names, fmt.Sprint("app", n))
		for c := range copies {
			names = append(names, fmt.Sprint("app", n, "copy", c))
		}
	}
	for _, name := range names {
		args = append(args, "--app", name+":"+key)
	}
	e, err := newEngine(ctx, fail, o, folder, args...)
	if err == nil {
		err = e.start()
	}
	if err != nil {
		return err
	}
	defer func() {
		last := os.Signal(os.Interrupt)
		if err != nil {
			last = syscall.SIGKILL // what differs must not change any more
		}
		stopped := e.stop(last)
		var d *Difference
		if err == nil && stopped != nil {
			err = &Difference{What: "end of the engine", Engine: stopped.Error(), Model: "ends"}
		}
		if errors.As(err, &d) {
			d.Seed, d.Folder, d.Start = seed, folder,
				"AFFINITY_OPERATOR="+operatorToken+" "+o.Engine+" "+strings.Join(e.args, " ")
		} else if o.Keep == "" {
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}()
	http := newHTTP()
	defer http.CloseIdleConnections()
	operator := &caller{engine: e, http: http}
	var all sync.WaitGroup
	disturbed := newDisturber(e, rand.New(rand.NewPCG(seed, 99)), t)
	for n := range apps {
		name := fmt.Sprint("app", n)
		w := &world{
			caller: &caller{engine: e, app: name, key: key, http: http}, operator: operator,
			model: model{rules: rules{retention: int64(retention) * day}, users: map[string]*user{},
				indexes: map[string]*index{}},
			r: rand.New(rand.NewPCG(seed, uint64(n)+1)), tally: t, base: time.Now().UnixMilli(),
		}
		for c := range copies {
			w.copies = append(w.copies, fmt.Sprint(name, "copy", c))
		}
		for _, before := range []int64{-4 * minute, -2 * minute, -1, 0, 1, minute, hour, 12 * hour, day, 2 * day,
			7 * day, 29 * day} {
			w.moments = append(w.moments, w.base-before)
		}
		all.Go(func() {
			if err := w.live(o, began, disturbed); err != nil {
				var d *Difference
				if errors.As(err, &d) && d.App == "" {
					d.App, d.Step = name, w.step
				}
				fail(err)
			}
		})
	}
	go func() {
		all.Wait()
		fail(errDone)
	}()
	if err := disturbed.disturb(ctx); err != nil {
		fail(err)
	}
	all.Wait()
	if err = context.Cause(ctx); errors.Is(err, errDone) {
		err = nil
	}
	return err
}

// live is the life of an app: rounds of operations, and a checkpoint after each.
func (w *world) live(o Options, began time.Time, disturbed *disturber) error {
	if err := w.limits(0); err != nil {
		return err
	}
	if _, err := w.operator.send("POST", "/local/apps/segments",
		map[string]any{"app": map[string]any{"ID": w.app}, "on": true}, 200); err != nil {
		return err
	}
	over := func() bool { return w.step >= o.Steps || o.For > 0 && time.Since(began) >= o.For }
	for first := true; first || !over(); first = false {
		if err := w.configure(first); err != nil {
			return err
		}
		time.Sleep(settle)
		for n := 0; n < round && !over(); n++ {
			w.step++
			disturbed.step()
			if err := w.act(); err != nil {
				return err
			}
		}
		if err := w.checkpoint(); err != nil {
			return err
		}
		if o.Progress != nil {
			o.Progress(fmt.Sprintf("%s: step %d of %d", w.app, w.step, o.Steps))
		}
		if w.r.IntN(2) == 0 || over() {
			if err := w.copyApp(); err != nil {
				return err
			}
		}
	}
	return nil
}

// disturber ends the engine now and then and starts it again.
type disturber struct {
	*engine
	r     *rand.Rand
	tally *tally

	mu   sync.Mutex
	left int           // steps until the next end
	due  chan struct{} // of the next end
}

func newDisturber(e *engine, r *rand.Rand, t *tally) *disturber {
	d := &disturber{engine: e, r: r, tally: t, due: make(chan struct{}, 1)}
	d.again()
	return d
}

func (d *disturber) again() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = killEvery/2 + d.r.IntN(killEvery)
}

// step counts an operation of an app.
func (d *disturber) step() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left--; d.left == 0 {
		d.due <- struct{}{}
	}
}

// disturb ends the engine at the steps that the seed says, some moments later: by kill -9, at times
// before it is up again, or by an interrupt.
func (d *disturber) disturb(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.due:
		}
		moments := []int{d.r.IntN(400)}
		signal, what := os.Signal(syscall.SIGKILL), "kills"
		switch d.r.IntN(4) {
		case 0:
			signal, what = os.Interrupt, "restarts"
		case 1:
			moments = append(moments, d.r.IntN(600)) // the start after it is killed too
		}
		for _, ms := range moments {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(time.Duration(ms) * time.Millisecond):
			}
			if err := d.stop(signal); err != nil {
				return &Difference{What: "end of the engine", Engine: err.Error(), Model: "ends"}
			}
			if err := d.start(); err != nil {
				return err
			}
			d.tally.did(what)
		}
		if err := d.ready(); err != nil {
			return nil // the campaign has ended, which says why
		}
		d.again()
	}
}
