package console

import (
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/affinityengine/affinity/shared/api"
)

// part is something that a page shows if the session may see it, and if it can be had now.
type part[T any] struct {
	Got    T
	OK     bool
	Denied bool   // the key lacks the permission
	Why    string // it is missing
	err    error
}

// got returns the part, nil if it is missing.
func (p part[T]) got() *T {
	if !p.OK {
		return nil
	}
	return &p.Got
}

// missing returns why the part is missing, unless that is a permission.
func (p part[T]) missing() (why string, err error) {
	if p.OK || p.Denied {
		return "", nil
	}
	return p.Why, p.err
}

// firstMissing returns why the first part is missing for another reason than a permission.
func firstMissing(parts ...interface{ missing() (string, error) }) (why string, err error) {
	for _, p := range parts {
		if why, err = p.missing(); err != nil {
			break
		}
	}
	return why, err
}

// asks makes requests of a page at the same time.
type asks struct{ wg sync.WaitGroup }

// ask makes a request for a part of a page. The part is complete after wait.
func ask[T any](a *asks, into *part[T], request func() (T, error)) {
	a.wg.Go(func() {
		got, err := request()
		into.Got, into.OK, into.err = got, err == nil, err
		if err != nil {
			into.Why = "The engine did not answer"
		}
		if refused, ok := errors.AsType[*api.Error](err); ok {
			into.Denied, into.Why = refused.Status == http.StatusForbidden, refused.Message
		}
	})
}

// asRefusal returns the engine's answer to a request that the client can correct.
func asRefusal(err error) (*api.Error, bool) {
	refused, ok := errors.AsType[*api.Error](err)
	return refused, ok && refused.Status < http.StatusInternalServerError &&
		refused.Status != http.StatusForbidden && refused.Status != http.StatusTooManyRequests
}

// refusalText is the message of an answer that is no success, with what to do.
func refusalText(err error) string {
	refused, ok := errors.AsType[*api.Error](err)
	if !ok {
		return "The engine did not answer. Ask again."
	}
	return strings.Join(append([]string{refused.Message}, refused.Others...), "; ")
}

func (a *asks) wait() { a.wg.Wait() }
