package move_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/store"
)

// An app that links tokens moves, and its tasks die. A known user counts the events of their tokens after each, while
// events come under both.
func TestLinkedTokensMove(t *testing.T) {
	w := newWorld(t, 0)
	for _, mode := range []config.IdentityMode{config.IdentityCollect, config.IdentityLink} {
		_, err := w.apps.SetIdentity(ctx, app, config.Identity{Mode: mode, Lookback: config.DefaultLookback}, 0)
		w.must(err)
	}
	counts := w.populate(3)
	login := seen("visitor", 1, "red")
	login.Known, login.Strong = "customer", true
	w.apply(seen("visitor", 0, "red"), login, seen("customer", 2, "red"))
	counts["visitor"], counts["customer"] = 2, 3
	w.exact("linked", counts)
	w.start("us")
	for n := 3; len(w.tasks) > 0; n++ {
		task, a := w.tasks[0], &allowance{}
		w.tasks = w.tasks[1:]
		a.left.Store(int64(7 * n % 40))
		if w.run(context.WithValue(ctx, allowanceKey{}, a), task) != nil {
			w.exact("after a death", counts)
			w.must(w.run(ctx, task))
		}
		w.exact(fmt.Sprintf("phase %s", w.app().Move.Phase), counts)
		if n < 20 {
			w.apply([]store.LogEvent{seen("visitor", n, "red"), seen("customer", n, "red")}[n%2])
			counts["customer"]++
			counts["visitor"] += 1 - n%2
		}
	}
	w.exact("moved", counts)
	w.empty("eu")
	if a := w.app(); a.Region != "us" || a.Moving() {
		t.Errorf("region %q, move %+v", a.Region, a.Move)
	}
}
