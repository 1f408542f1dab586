package query

import (
	"context"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/rank/segment"
)

// exportedUsers is how many users of a segment an export reads again at a time.
const exportedUsers = 1000

// exported returns an fn that passes on those users who meet the condition by what counts for exports, too: an app may
// use other events for these than to find users. rest passes on the last ones.
func (r *Reader) exported(ctx context.Context, app config.App, where segment.Condition,
	fn func(User) error) (some func(User) error, rest func() error, err error) {
	q, err := where.Compile(app.Strategy)
	if err != nil {
		return nil, nil, err
	}
	of, at := &segmentAudit{Reader: r, app: app}, r.now().UnixMilli()
	var waiting []User
	rest = func() error {
		tokens := make([]string, len(waiting))
		for i, u := range waiting {
			tokens[i] = u.Token
		}
		held, err := of.held(ctx, q, tokens, at)
		for _, u := range waiting {
			var holds bool
			if u.Score, holds = held[u.Token]; holds && err == nil {
				err = fn(u)
			}
		}
		waiting = waiting[:0]
		return err
	}
	some = func(u User) error {
		if waiting = append(waiting, u); len(waiting) < exportedUsers {
			return nil
		}
		return rest()
	}
	return some, rest, nil
}
