// Package wordpress loads the published posts of a WordPress site into an index
// of an engine, and keeps the index in step: one run adds, changes and removes
// what is needed.
//
// A run has three parts. It reads the posts that were modified since the last
// run, page by page in the order of modification. Then it lists the IDs and the
// dates of modification of all posts, and reads those that are not in the index
// as listed: posts that moved between pages while these were read, scheduled posts
// (WordPress publishes them without modifying them), and posts whose category, tag
// or author got another name. Last, it removes what the site does not list, after
// it has asked for each such post by its ID.
//
// What the index holds stands in a state file, since an engine does not list its
// objects. The package keeps nothing else. It is apart from the commands because
// it speaks to a server that is not an engine.
package wordpress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/api"
)

// overlap is how far before the last change a run reads again: changes of one
// second may lie on two pages, and servers of one site have different clocks.
const overlap = 5 * time.Minute

// Engine is what a sync needs of an engine; *client.Client is one.
type Engine interface {
	Batch(ctx context.Context, index string, actions ...api.BatchAction) (api.BatchAnswer, error)
	Get(ctx context.Context, index, objectID string) (json.RawMessage, error)
	Settings(ctx context.Context, index string) (api.Settings, error)
	SetSettings(ctx context.Context, index string, s api.Settings) (api.SettingsAnswer, error)
}

// Options say what to sync.
type Options struct {
	Site   *Site
	Engine Engine
	Target Target // its Index is where the posts go
	State  string // the path of the state file; its directory exists
	// PerPage is how many posts one page has, 1 to MaxPerPage.
	PerPage int
	// Full replaces all that the index holds.
	Full bool
	// AllowMassDeletion removes also more than half of the posts.
	AllowMassDeletion bool
	// Progress shows what is done; done and total count posts, and total may be 0.
	Progress func(what string, done, total int)
	// Warn prints a line of text.
	Warn func(string)
}

// Summary says what a run did.
type Summary struct {
	Site      string `json:"site"`
	Index     string `json:"index"`
	Listed    int    `json:"listed"` // posts that the site lists
	Added     int    `json:"added"`
	Changed   int    `json:"changed"`
	Unchanged int    `json:"unchanged"`
	Removed   int    `json:"removed"`
	// WithoutWordPress are posts whose WordPress form does not fit into a record.
	WithoutWordPress []int64 `json:"withoutWordPress"`
	// LeftOut are the posts that are not in the index, by reason.
	LeftOut map[string][]int64 `json:"leftOut"`
	// Refused says whether the engine refused a post.
	Refused bool `json:"refused"`
}

// run is one run of a sync.
type run struct {
	Options
	state   *state
	names   *names
	listed  map[int64]stamp
	begun   map[int64]bool // posts that the index held when the run began
	outcome map[int64]string
	sum     Summary
}

const (
	added   = "added"
	changed = "changed"
	removed = "removed"
)

// Sync brings an index in step with a site. With an error the summary says what
// was done before it; the next run does the rest.
func Sync(ctx context.Context, o Options) (sum Summary, err error) {
	unlock, err := lock(o.State)
	if err != nil {
		return Summary{}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	s, err := loadState(o.State, o.Target)
	if err == nil {
		err = sweep(o.State)
	}
	if err != nil {
		return Summary{}, err
	}
	r := &run{Options: o, state: s, names: newNames(o.Site), begun: map[int64]bool{}, outcome: map[int64]string{}}
	r.sum = Summary{Site: o.Target.Site, Index: o.Target.Index, WithoutWordPress: []int64{}, LeftOut: map[string][]int64{}}
	for id, h := range s.Posts {
		r.begun[id] = h.Record != ""
	}
	err = r.sync(ctx)
	return r.summary(), err
}

func (r *run) sync(ctx context.Context) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	read := r.readChanges
	if r.Full || r.state.Replacing {
		read = r.replace
	}
	if err := read(ctx); err != nil {
		return err
	}
	if err := r.list(ctx); err != nil {
		return err
	}
	gone, err := r.readRest(ctx)
	if err != nil {
		return err
	}
	if err := r.removeGone(ctx, gone); err != nil {
		return err
	}
	return r.state.save()
}

// prepare checks that the state describes the index, and sets the settings of an
// index that has none.
func (r *run) prepare(ctx context.Context) error {
	settings, err := r.Engine.Settings(ctx, r.Target.Index)
	if err != nil {
		return fmt.Errorf("read the settings of index %s: %w", r.Target.Index, err)
	}
	isSet := settings.AttributesForFaceting != nil
	if r.state.lost && isSet && !r.Full {
		return fmt.Errorf("the index %s has settings, so this is not its first sync, and there is no state file %s: "+
			"give the file with --state, or replace all that the index holds with --full", r.Target.Index, r.State)
	}
	if err := r.checkHeld(ctx); err != nil {
		return err
	}
	r.state.Replacing = r.state.Replacing || r.Full && r.state.lost // also if this run is killed
	if err := r.state.save(); err != nil {                          // before the settings, which say that a sync has begun
		return err
	}
	if isSet {
		return nil
	}
	// Never the WordPress form: a facet of whole posts.
	facets := api.Settings{AttributesForFaceting: []string{"categories", "tags", "author"}}
	if _, err := r.Engine.SetSettings(ctx, r.Target.Index, facets); err != nil {
		return fmt.Errorf("set the settings of index %s: %w", r.Target.Index, err)
	}
	return nil
}

// checkHeld asks the engine for one post of the state. An engine that lost its
// data, or a cleared index, has none.
func (r *run) checkHeld(ctx context.Context) error {
	latest := int64(0)
	for id, h := range r.state.Posts {
		if h.Record != "" {
			latest = max(latest, id)
		}
	}
	if latest == 0 {
		return nil
	}
	_, err := r.Engine.Get(ctx, r.Target.Index, strconv.FormatInt(latest, 10))
	if refused := refusal(err); refused != nil && refused.Status == http.StatusNotFound {
		r.Warn(fmt.Sprintf("the index %s does not hold post %d, which the state file names: all posts are loaded again", r.Target.Index, latest))
		r.state.doubt()
		clear(r.begun)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read post %d of index %s: %w", latest, r.Target.Index, err)
	}
	return nil
}

// readChanges stores the posts that were modified since the last run, or all. Each
// page moves the start of the next run, so that a killed one resumes.
func (r *run) readChanges(ctx context.Context) error {
	params := url.Values{"orderby": {"modified"}, "order": {"asc"}}
	if after, err := time.Parse(gmtLayout, r.state.After); err == nil {
		params.Set("modified_after", after.Add(-overlap).Format(gmtLayout)+"Z")
	}
	done := 0
	err := r.Site.eachPage(ctx, "wp/v2/posts", params, r.PerPage, func(p page) error {
		posts := r.parse(p.items)
		if err := r.store(ctx, posts); err != nil {
			return err
		}
		for _, one := range posts {
			r.state.advance(one.Modified)
		}
		done += len(p.items)
		r.Progress("changed posts", done, p.total)
		return r.state.save()
	})
	if err != nil {
		return fmt.Errorf("read changed posts: %w", err)
	}
	return nil
}

// list lists all posts, and learns what the terms and authors of the held ones are
// called now.
func (r *run) list(ctx context.Context) (err error) {
	r.listed, err = r.Site.walk(ctx, r.PerPage, func(done, total int) { r.Progress("listed posts", done, total) })
	if err != nil {
		return fmt.Errorf("list all posts: %w", err)
	}
	r.sum.Listed = len(r.listed)
	posts := make([]*post, 0, len(r.state.Posts))
	for _, h := range r.state.Posts {
		posts = append(posts, &post{Author: h.Author, Categories: h.Categories, Tags: h.Tags})
	}
	if err := r.names.learnAll(ctx, posts); err != nil {
		return fmt.Errorf("read the names of terms and authors: %w", err)
	}
	if r.names.authorless != nil {
		r.Warn(fmt.Sprintf("the site does not name its authors (%v): posts keep the author that they have, and new "+
			"ones have none", r.names.authorless))
	}
	return nil
}

// current reports whether the index holds a post as the site lists it.
func (r *run) current(s stamp) bool {
	h := r.state.Posts[s.ID]
	return h != nil && h.Record != "" && h.Modified == s.Modified && h.Terms == r.names.terms(h.Categories, h.Tags) &&
		h.AuthorName == r.authorName(h, h.Author)
}

// readRest reads the posts that are listed and not in the index as listed. It
// returns those that are in the index and not listed.
func (r *run) readRest(ctx context.Context) (gone []int64, err error) {
	var wanted, closed []int64
	for _, id := range slices.Sorted(maps.Keys(r.listed)) {
		switch s := r.listed[id]; {
		case s.Content.Protected:
			closed = append(closed, id)
		case !r.current(s):
			wanted = append(wanted, id)
		}
	}
	for id := range r.state.Posts {
		if _, ok := r.listed[id]; !ok {
			gone = append(gone, id)
		}
	}
	if err := r.leave(ctx, closed, reasonProtected); err != nil {
		return nil, err
	}
	done := 0
	for some := range slices.Chunk(wanted, min(r.PerPage, MaxPerPage)) {
		items, err := r.Site.include(ctx, some, "")
		if err != nil {
			return nil, fmt.Errorf("read posts: %w", err)
		}
		posts := r.parse(items)
		if err := r.store(ctx, posts); err != nil {
			return nil, err
		}
		for _, id := range some {
			found := slices.ContainsFunc(posts, func(p *post) bool { return p.ID == id })
			if !found && r.state.Posts[id] != nil {
				gone = append(gone, id) // it left after it was listed
			}
		}
		done += len(some)
		r.Progress("other posts", done, len(wanted))
	}
	slices.Sort(gone)
	return gone, nil
}

// parse reads the posts of a page. One that is not a post is counted and left out.
func (r *run) parse(items []jsontext.Value) []*post {
	posts := make([]*post, 0, len(items))
	for _, item := range items {
		p := &post{raw: item}
		if err := unmarshal(item, p); err != nil || p.ID <= 0 || p.Status == "" {
			r.leftOut(reasonUnread, p.ID)
			continue
		}
		posts = append(posts, p)
	}
	return posts
}

func (r *run) leftOut(reason string, id int64) {
	if !slices.Contains(r.sum.LeftOut[reason], id) {
		r.sum.LeftOut[reason] = append(r.sum.LeftOut[reason], id)
	}
}

// summary counts the outcomes.
func (r *run) summary() Summary {
	for id, h := range r.state.Posts {
		if r.outcome[id] == "" && h.Record != "" {
			r.sum.Unchanged++
		}
	}
	for _, outcome := range r.outcome {
		switch outcome {
		case added:
			r.sum.Added++
		case changed:
			r.sum.Changed++
		case removed:
			r.sum.Removed++
		}
	}
	for _, ids := range r.sum.LeftOut {
		slices.Sort(ids)
	}
	slices.Sort(r.sum.WithoutWordPress)
	return r.sum
}
