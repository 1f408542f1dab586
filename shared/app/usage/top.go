package usage

import (
	"context"
	"fmt"
)

// AppUse is what an app used in some days.
type AppUse struct {
	App string `json:"app"`
	Counts
	// Hottest is the user with the most events, nil if none is known.
	Hottest *User `json:"hottestUser"`
}

// Top returns what each app used from a day to a day, both included, in the order
// of apps.
func Top(ctx context.Context, r Reader, apps []string, from, to Day) ([]AppUse, error) {
	all := make([]AppUse, 0, len(apps))
	for _, app := range apps {
		days, err := r.Usage(ctx, app, from, to)
		if err != nil {
			return nil, fmt.Errorf("usage of app %s: %w", app, err)
		}
		use := AppUse{App: app}
		for _, counts := range days {
			use.Add(counts)
		}
		users, err := r.HotUsers(ctx, app, from, to)
		if err != nil {
			return nil, fmt.Errorf("hot users of app %s: %w", app, err)
		}
		if len(users) > 0 {
			use.Hottest = &users[0]
		}
		all = append(all, use)
	}
	return all, nil
}
