package wordpress

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// The kinds of names, by their routes below wp/v2.
const (
	categories = "categories"
	tags       = "tags"
	users      = "users"
)

// names are the names of terms and authors, as the site gives them in this run.
// A run asks for each ID once. To rename a term does not modify its posts, so
// that no listing of changed posts shows it.
type names struct {
	site  *Site
	known map[string]map[int64]string // "" for IDs that the site does not know
	// authorless says why the site does not name its authors, nil if it does.
	// Some sites hide them.
	authorless error
}

func newNames(site *Site) *names {
	return &names{site: site, known: map[string]map[int64]string{categories: {}, tags: {}, users: {}}}
}

// learn asks the site for the names that are not known yet.
func (n *names) learn(ctx context.Context, kind string, ids []int64) error {
	missing := map[int64]bool{}
	for _, id := range ids {
		if _, ok := n.known[kind][id]; !ok && id > 0 {
			missing[id] = true
		}
	}
	if kind == users && n.authorless != nil {
		return nil
	}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(missing)), MaxPerPage) {
		var found []struct {
			ID   int64  `json:"id"`
			Name string `json:"name"`
		}
		params := url.Values{"include": {list(some)}, "per_page": {fmt.Sprint(MaxPerPage)}, "_fields": {"id,name"}}
		_, err := n.site.get(ctx, "wp/v2/"+kind, params, &found)
		if kind == users && hidden(err) {
			n.authorless = err
			return nil
		}
		if err != nil {
			return err
		}
		for _, id := range some {
			n.known[kind][id] = ""
		}
		for _, one := range found {
			if !slices.Contains(some, one.ID) {
				return unasked(kind, one.ID)
			}
			n.known[kind][one.ID] = plain(one.Name)
		}
	}
	return nil
}

// hidden reports whether a site refuses to list something.
func hidden(err error) bool {
	var refused *AnswerError
	return errors.As(err, &refused) &&
		(refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden ||
			refused.Status == http.StatusNotFound)
}

// learnAll asks for the names of the posts' terms and authors.
func (n *names) learnAll(ctx context.Context, posts []*post) error {
	ids := map[string][]int64{}
	for _, p := range posts {
		ids[categories] = append(ids[categories], p.Categories...)
		ids[tags] = append(ids[tags], p.Tags...)
		ids[users] = append(ids[users], p.Author)
	}
	for _, kind := range []string{categories, tags, users} {
		if err := n.learn(ctx, kind, ids[kind]); err != nil {
			return err
		}
	}
	return nil
}

func (n *names) of(kind string, ids []int64) []string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = n.known[kind][id]
	}
	return distinct(texts)
}

func (n *names) author(id int64) string { return n.known[users][id] }

// terms is a digest of the names of a post's terms. A renamed term changes it.
func (n *names) terms(categoryIDs, tagIDs []int64) string {
	return digest([]byte(strings.Join(n.of(categories, categoryIDs), "\n") + "\n\n" +
		strings.Join(n.of(tags, tagIDs), "\n")))
}
