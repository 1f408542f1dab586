package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// Peers computes the profiles of the same events with the engine, with DuckDB and with
// PostgreSQL, and stores them.
type Peers struct {
	Users    int    // 0: as many as have usualTotal events
	Events   []int  // per user
	Repeat   int    // measurements; the median counts
	DuckDB   string // its command line tool
	Postgres string // directory of its programs; "": the newest of Debian, or those on the PATH
	Common
}

// The layouts of a peer's tables: with texts, as an analyst loads events, and with
// numbers for users, kinds, facets and values, the best case of a database.
var peerLayouts = []string{"text", "ids"}

// A peer is a database that computes profiles.
type peer interface {
	// measure loads the files of data, computes and stores the profiles of a layout as
	// often as asked, and writes them to files, one for each layout: layout.csv.
	measure(ctx context.Context, data peerData, layout string, repeat int) (taken, error)
}

// Check returns a FlagError for a value out of range.
func (o Peers) Check() error { return o.recompute().Check() }

// recompute is the measurement of the engine.
func (o Peers) recompute() Recompute {
	return Recompute{Users: o.Users, Events: o.Events, Facets: usualFacets, Values: usualValues,
		Selected: usualSelected, Repeat: o.Repeat,
		Readers: []string{History}, Common: o.Common}
}

// Run measures. It fails without a report if a database computes another profile than
// the engine. A database that is not installed is named in the report.
func (o Peers) Run(ctx context.Context, start Starter) (PeersReport, error) {
	if err := o.Check(); err != nil {
		return PeersReport{}, err
	}
	report := PeersReport{Machine: machine(), Repeat: o.Repeat, Workers: workers(), InProcess: o.InProcess}
	peers := o.installed(&report)
	for _, n := range o.Events {
		d := newDataset(o.recompute().shape(n))
		set, err := o.measureSet(ctx, start, d, peers)
		if err != nil {
			return PeersReport{}, fmt.Errorf("%d events a user: %w", n, err)
		}
		report.Sets = append(report.Sets, set)
	}
	return report, nil
}

// namedPeer is an installed database.
type namedPeer struct {
	name string
	peer
}

func (o Peers) installed(report *PeersReport) (peers []namedPeer) {
	tool, err := findDuckDB(o.DuckDB)
	if err == nil {
		peers = append(peers, namedPeer{"DuckDB", duckDB{tool}})
	} else {
		report.Absent = append(report.Absent, err.Error())
	}
	programs, err := findPostgres(o.Postgres)
	if err == nil {
		peers = append(peers, namedPeer{"PostgreSQL", postgres{programs}})
	} else {
		report.Absent = append(report.Absent, err.Error())
	}
	return peers
}

// measureSet measures the engine and then each database with the same events.
func (o Peers) measureSet(ctx context.Context, start Starter, d *dataset, peers []namedPeer) (set PeerSet, err error) {
	set.Set = d.set()
	engine, want, err := o.engine(ctx, start, d)
	if err != nil {
		return set, err
	}
	set.Peers = append(set.Peers, engine)
	data := peerData{dataset: d}
	if data.dir, err = os.MkdirTemp("", "affinity-peers"); err != nil {
		return set, fmt.Errorf("make a directory for the events: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(data.dir)) }()
	if err := data.write(); err != nil {
		return set, err
	}
	for _, p := range peers {
		for _, layout := range peerLayouts {
			o.progress("%s: %s, %s", set.Set, p.name, layout)
			t, err := p.measure(ctx, data, layout, o.Repeat)
			if err == nil {
				err = data.verify(filepath.Join(data.dir, layout+".csv"), layout, want)
			}
			if err != nil {
				return set, fmt.Errorf("%s, %s: %w", p.name, layout, err)
			}
			set.Peers = append(set.Peers, PeerResult{
				Peer: p.name, Layout: layout, Seconds: t.seconds, Walls: t.walls,
				EventsPerSecond: ratio(float64(set.Events), t.seconds), CPUSeconds: t.cpu,
				EngineFaster: ratio(t.seconds, engine.Seconds), EngineCPULess: ratio(t.cpu, engine.CPUSeconds),
			})
		}
	}
	return set, nil
}

// scored is a value that a user's events score.
type scored struct{ user, facet, value string }

// engine measures the engine's recompute with writes, and returns what it stored.
func (o Peers) engine(ctx context.Context, start Starter,
	d *dataset) (result PeerResult, stored map[scored]float64, err error) {
	c, err := openClient(ctx, start)
	if err != nil {
		return PeerResult{}, nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	o.progress("%s: the engine", d.set())
	j, err := newJudge(ctx, d)
	if err != nil {
		return PeerResult{}, nil, err
	}
	if err := loadHistories(ctx, c, d, 0); err != nil {
		return PeerResult{}, nil, fmt.Errorf("load histories: %w", err)
	}
	results, err := o.recompute().measureReader(ctx, History, newHistoryReader(c, d, 0), c, d, j)
	if err != nil {
		return PeerResult{}, nil, fmt.Errorf("the engine: %w", err)
	}
	r := results[1] // with writes
	result = PeerResult{Peer: "Affinity", Layout: "histories", Seconds: r.Seconds, Walls: r.Walls,
		EventsPerSecond: r.EventsPerSecond,
		CPUSeconds:      r.ClientCPUSeconds, ServerCPUSeconds: r.Server.CPUSeconds}
	stored = map[scored]float64{}
	err = eachStored(ctx, c, d, func(user string, p affinity.Profile) error {
		for _, a := range p.Affinities {
			stored[scored{user, a.Facet, a.Value}] = a.Scores[0]
		}
		return nil
	})
	return result, stored, err
}
