package console

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
)

// saveSegment saves the condition of a form under a name: in place of the segment that the form began
// with, if the name is that one's, and else as a new segment.
func saveSegment(v *visit) (any, error) {
	p := &segmentPage{Form: readSegmentForm(v.PostForm), Name: strings.TrimSpace(v.PostForm.Get("name"))}
	if err := p.reopen(v); err != nil {
		return nil, err
	}
	if p.Form.complete() && p.Form.ready() {
		what, err := p.save(v)
		if err != nil {
			return nil, err
		}
		if what != "" {
			return nil, done(segmentPath(p.Name, ""), what)
		}
	} else if p.Form.empty {
		p.Fault = "There is no condition to save yet"
	}
	v.status = http.StatusUnprocessableEntity
	if p.Taken != "" || p.Changed != nil {
		v.status = http.StatusConflict
	}
	return p, p.load(v)
}

// save saves the condition. It returns the notice of what it did, empty if the page says why it did
// nothing.
func (p *segmentPage) save(v *visit) (what string, err error) {
	create := p.Opened == "" || p.Name != p.Opened
	if p.Name == "" {
		p.Fault = "Type a name"
		return "", nil
	}
	if !create {
		if jsonText(p.Saved.Where) == jsonText(p.Form.where) {
			return "segment-same", nil
		}
		if p.Saved.SetAt.UTC().Format(time.RFC3339Nano) != p.SetAt {
			p.Changed, p.SetAt = p.Saved, p.Saved.SetAt.UTC().Format(time.RFC3339Nano)
			return "", nil
		}
	}
	_, err = v.engine.Segments().Save(v.Context(), p.Name, p.Form.where, create)
	refused, ok := asRefusal(err)
	switch {
	case err == nil:
		return "segment-saved", nil
	case !ok:
		return "", err
	case create && refused.Status == http.StatusConflict:
		p.Fault, p.Taken = "Another segment has this name: choose another one, or open that segment to change it",
			segmentPath(p.Name, "")
	case !strings.HasPrefix(refused.Message, "where") && !strings.HasPrefix(refused.Message, "Unknown field"):
		p.Fault = capitalized(refused.Message)
	}
	return "", nil // a fault of the condition is part of the answer about it
}

// ChangedWords says the condition that another person has saved since.
func (p *segmentPage) ChangedWords() []wordPart { return conditionWords(p.Changed.Where) }

// segmentDelete asks whether to delete a segment.
type segmentDelete struct {
	Name, Path string
	Words      []wordPart
	Sizes      int // days that are deleted with it
}

func confirmSegmentDelete(v *visit) (any, error) {
	name := v.PathValue("name")
	v.title, v.command = "Delete a segment", "affinity segment delete "+shellArg(name)
	s, err := v.engine.Segments().Get(v.Context(), name)
	if err != nil {
		return nil, err
	}
	v.made.keep(func(call) bool { return false })
	v.made.add(call{Method: http.MethodDelete, Path: "/1/segments/" + s.Name})
	return segmentDelete{s.Name, segmentPath(s.Name, ""), conditionWords(s.Where), len(s.Sizes)}, nil
}

func deleteSegment(v *visit) (any, error) {
	_, err := v.engine.Segments().Delete(v.Context(), v.PathValue("name"))
	var refused *api.Error
	if err != nil && !(errors.As(err, &refused) && refused.Status == http.StatusNotFound) { // another person was first
		return nil, err
	}
	return nil, done(segmentsPath, "segment-deleted")
}
