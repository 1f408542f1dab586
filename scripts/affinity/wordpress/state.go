package wordpress

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Target says what a state file is about.
type Target struct {
	Site   string `json:"site"`
	Engine string `json:"engine"`
	App    string `json:"app"`
	Index  string `json:"index"`
}

// String names a target in messages.
func (t Target) String() string {
	return fmt.Sprintf("site %s, engine %s, app %s, index %s", t.Site, t.Engine, t.App, t.Index)
}

// stateVersion is the form of the file. A tool refuses a later one.
const stateVersion = 1

// state is what the engine holds of a site. A post enters it before the engine
// gets the post, and leaves it after the engine has removed the post: however the
// process ends in between, the engine holds no post that the state does not know.
type state struct {
	Version int    `json:"version"`
	Target  Target `json:"target"`
	// Replacing is set while the index may hold posts that the state does not
	// know: the next run begins with clearing it.
	Replacing bool `json:"replacing,omitempty"`
	// After is the latest modified_gmt that was read. Later changes are read next.
	After string          `json:"after,omitempty"`
	Posts map[int64]*held `json:"posts"`

	path string
	lost bool // there was no file
}

// held is a post that the engine holds, or may hold.
type held struct {
	Modified string `json:"m,omitempty"` // modified_gmt
	// Record is a digest of the record; empty if the engine may not hold it.
	Record     string  `json:"r,omitempty"`
	Categories []int64 `json:"c,omitempty"`
	Tags       []int64 `json:"t,omitempty"`
	Terms      string  `json:"n,omitempty"` // a digest of the names of the terms
	Author     int64   `json:"a,omitempty"`
	AuthorName string  `json:"by,omitempty"`
}

// loadState reads a state file. Without one it returns an empty state.
func loadState(path string, target Target) (*state, error) {
	s := &state{Version: stateVersion, Target: target, Posts: map[int64]*held{}, path: path}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		s.lost = true
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(text, s)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s is not a state file: %w; move it away and run again with --full", path, err)
	case s.Version != stateVersion:
		return nil, fmt.Errorf("%s is of another version of this tool: %d, not %d", path, s.Version, stateVersion)
	case s.Target != target:
		return nil, fmt.Errorf("%s is the state of another sync (%s), not of this one (%s): name another file with --state", path, s.Target, target)
	}
	for id, h := range s.Posts {
		if h == nil {
			s.Posts[id] = &held{}
		}
	}
	if s.Posts == nil {
		s.Posts = map[int64]*held{}
	}
	return s, nil
}

// save replaces the file whole: a reader, or a run after a kill, sees the old one
// or the new one.
func (s *state) save() error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode the state: %w", err)
	}
	file, err := beside(s.path)
	if err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), s.path)
	}
	if err != nil {
		return fmt.Errorf("write the state: %w", errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}

// partial is the end of the names of files that a run makes and removes, with a
// number behind it.
const partial = ".part-"

// beside makes a file in the directory of the state. Only its owner may read it.
func beside(state string) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(state), filepath.Base(state)+partial+"*")
}

// sweep removes what killed runs left behind.
func sweep(state string) error {
	entries, err := os.ReadDir(filepath.Dir(state))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(state)+partial) {
			err = errors.Join(err, os.Remove(filepath.Join(filepath.Dir(state), e.Name())))
		}
	}
	return err
}

// doubt makes the next listing read every post again: what the engine holds is
// not known.
func (s *state) doubt() {
	s.After = ""
	for id := range s.Posts {
		s.Posts[id] = &held{}
	}
}

// advance notes that a change was read. A date that is none moves nothing.
func (s *state) advance(modified string) {
	if instant(modified) != "" {
		s.After = max(s.After, modified)
	}
}
