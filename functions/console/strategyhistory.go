package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// shownVersions is how many versions a page lists.
const shownVersions = 50

// versionsPage lists the strategies that the app has and had.
type versionsPage struct {
	Now   time.Time
	List  []api.StrategyVersion
	Total int
	Next  int64 // older versions follow; 0: none
}

func loadVersions(v *visit) (any, error) {
	v.title, v.command = "Versions of the strategy", "affinity strategy list"
	all, err := v.engine.Strategies().Versions(v.Context())
	if err != nil {
		return nil, err
	}
	p := &versionsPage{Now: v.now(), List: all.Versions, Total: len(all.Versions)}
	if before, ok := versionOf(v.URL.Query().Get("before")); ok {
		p.List = slices.DeleteFunc(slices.Clone(p.List),
			func(version api.StrategyVersion) bool { return version.Version >= before })
	}
	if len(p.List) > shownVersions {
		p.List = p.List[:shownVersions]
		p.Next = p.List[shownVersions-1].Version
	}
	return p, nil
}

// versionPage compares a version with the active strategy.
type versionPage struct {
	Version  int64
	At       *api.StrategyVersion // nil: it is not in the list
	Now      time.Time
	Active   activeStrategy
	Changes  []string // from the active strategy to this version
	Effect   string
	DiffJSON string
	JSON     string
	Same     bool
	Raced    bool
}

func loadVersion(v *visit) (any, error) { return newVersionPage(v) }

// newVersionPage returns the page of the version that the address names.
func newVersionPage(v *visit) (*versionPage, error) {
	version, ok := versionOf(v.PathValue("version"))
	if !ok || version == 0 {
		return nil, httpapi.Errorf(http.StatusNotFound, "The versions of a strategy are numbers from 1 on")
	}
	active, versions, err := readActive(v)
	if err != nil {
		return nil, err
	}
	v.title = fmt.Sprintf("Version %d of the strategy", version)
	v.command = fmt.Sprintf("affinity strategy diff %d %d && affinity strategy restore %d", active.Version,
		version, version)
	s, raw, err := readVersion(v, version)
	if err != nil {
		return nil, err
	}
	p := &versionPage{Version: version, Now: v.now(), Active: active, Same: active.Strategy.Equal(s)}
	for i := range versions {
		if versions[i].Version == version {
			p.At = &versions[i]
		}
	}
	changes := strategy.Diff(active.Strategy, s)
	p.Changes, p.Effect = changeWords(active.Strategy, s), effectWords(active.Strategy, s)
	text, err := json.Marshal(struct {
		From          int64             `json:"from"`
		To            int64             `json:"to"`
		ScoringChange bool              `json:"scoringChange"`
		Changes       []strategy.Change `json:"changes"`
	}{active.Version, version, !active.Strategy.SameScoring(s), append([]strategy.Change{}, changes...)})
	if err != nil {
		return nil, fmt.Errorf("write the difference: %w", err)
	}
	p.DiffJSON, p.JSON = indented(string(text)), indented(raw)
	return p, nil
}

// indented is JSON for people, and shown what is none.
func indented(text string) string {
	got, err := readable([]byte(text))
	if err != nil {
		return shown(text)
	}
	return got
}

// restoreVersion makes the strategy of a version the active one again.
func restoreVersion(v *visit) (any, error) {
	p, err := newVersionPage(v)
	if err != nil {
		return nil, err
	}
	saw, ok := versionOf(v.PostForm.Get("active"))
	if !ok {
		return nil, errNoVersion
	}
	if p.Same { // also if the form was sent twice
		return nil, done("/console/strategy/versions", "strategy-same-version")
	}
	if p.Raced = saw != p.Active.Version; p.Raced {
		return p, nil
	}
	refused := v.engine.Strategies().Restore(v.Context(), p.Version, &saw)
	if refused == nil {
		return nil, done("/console/strategy/versions", "strategy-restored")
	}
	if !isConflict(refused) {
		return nil, refused
	}
	if p, err = newVersionPage(v); err != nil {
		return nil, err
	}
	if p.Same {
		return nil, done("/console/strategy/versions", "strategy-same-version")
	}
	if p.Raced = saw != p.Active.Version; !p.Raced { // the engine refuses changes for another reason
		return nil, refused
	}
	return p, nil
}
