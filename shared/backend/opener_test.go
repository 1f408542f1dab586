package backend

import (
	"context"
	"errors"
	"slices"
	"testing"

	"google.golang.org/api/option"
)

// placed is the configuration of a service.
type placed struct {
	name  string
	err   error
	where func(ctx context.Context, app string) (string, error)
}

func (p placed) In(where func(ctx context.Context, app string) (string, error)) placed {
	p.where = where
	return p
}

// service writes down that it is closed.
type service struct {
	name  string
	calls *[]string
}

func (s *service) Close() error {
	*s.calls = append(*s.calls, "close "+s.name)
	return nil
}

func TestOpener(t *testing.T) {
	failed := errors.New("no credentials")
	for name, c := range map[string]struct {
		faults [3]error
		want   []string
	}{
		"all":       {[3]error{}, []string{"open a", "open b", "do", "open c"}},
		"the last":  {[3]error{2: failed}, []string{"open a", "open b", "do", "open c", "close b", "close a"}},
		"the first": {[3]error{0: failed}, []string{"open a"}},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []string
			open := func(_ context.Context, p placed, options ...option.ClientOption) (*service, error) {
				if calls = append(calls, "open "+p.name); p.where == nil || len(options) != 1 {
					t.Errorf("service %s knows where apps live: %v, options %v", p.name, p.where != nil, options)
				}
				return &service{p.name, &calls}, p.err
			}
			o := &Opener{}
			a := Use(t.Context(), o, placed{name: "a", err: c.faults[0]}, open)
			b := Use(t.Context(), o, placed{name: "b", err: c.faults[1]}, open)
			Get(t.Context(), o, "do", 0, func(_ context.Context, from string, _ int) (int, error) {
				calls = append(calls, from)
				return 0, nil
			})
			Use(t.Context(), o, placed{name: "c", err: c.faults[2]}, open)
			err := o.Err()
			if !slices.Equal(calls, c.want) {
				t.Errorf("calls %q, want %q", calls, c.want)
			}
			if wrong := errors.Join(c.faults[:]...) != nil; wrong != errors.Is(err, failed) || !wrong && (a == nil || b == nil || err != nil) {
				t.Errorf("services %v and %v, error %v", a, b, err)
			}
		})
	}
}
