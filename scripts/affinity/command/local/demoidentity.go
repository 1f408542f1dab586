package local

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/shop"
	"github.com/affinityengine/affinity/shared/api"
)

// An evening on a phone: what the anonymous token puts into the cart, and who then signs in.
const (
	eveningToken   = "phone-1"
	eveningPersona = "camper"
	eveningBrand   = "Ember & Oak"
	eveningOwn     = "Cairn" // the brand that the persona loves
	eveningCarts   = 4
	eveningOthers  = 3 // products of each of the two brands on the page
	eveningShown   = 3 // of the page
)

// evening shows that a sign-in keeps what an anonymous token did before, and that an unlink takes it away again.
// A data folder of an earlier release has an app that links no tokens.
func (d *demo) evening(ctx context.Context) error {
	app, err := d.apps.App(ctx, d.c.App())
	if err != nil {
		return fmt.Errorf("ask whether the app links tokens: %w", err)
	}
	if !app.Identity.Counts() {
		return nil
	}
	user := shop.UserToken(eveningPersona, 0)
	persona, _ := d.shop.Persona(eveningPersona)
	d.print("")
	d.print("%s the %s, who %s,", d.colors.Bold("the evening kept:"), persona.ID, persona.Taste)
	d.print("puts %d products of %s into the cart on a phone, anonymously, and then signs in on it.",
		eveningCarts, eveningBrand)
	d.print("What their profile says of the brand, and what a page begins with for them:")
	liked, page := d.eveningPage()
	before, err := d.shows(ctx, "before", user, page, func(float64) bool { return true })
	if err != nil {
		return err
	}
	if err := d.signIn(ctx, user, liked); err != nil {
		return err
	}
	if _, err := d.shows(ctx, "signed in", user, page, func(score float64) bool { return score > before }); err != nil {
		return err
	}
	if _, err := d.c.Profiles().Unlink(ctx, eveningToken, user); err != nil {
		return fmt.Errorf("unlink the phone of %s: %w", user, err)
	}
	_, err = d.shows(ctx, "unlinked", user, page, func(score float64) bool { return score <= before })
	return err
}

// eveningPage returns the products that the phone puts into the cart, and a page with others of their brand and of
// the one that the persona loves.
func (d *demo) eveningPage() (liked []string, page []shop.Object) {
	page = d.page()
	others := map[string]int{eveningBrand: eveningOthers, eveningOwn: eveningOthers}
	for _, o := range d.shop.Objects() {
		switch {
		case o.Brand == eveningBrand && len(liked) < eveningCarts:
			liked = append(liked, o.ObjectID)
		case others[o.Brand] > 0:
			others[o.Brand]--
			page = append(page, o)
		}
	}
	return liked, page
}

// signIn sends what the phone does anonymously, and then an event with the user who has signed in.
func (d *demo) signIn(ctx context.Context, user string, liked []string) error {
	event := api.Event{EventType: "conversion", EventSubtype: "addToCart", EventName: "Added To Cart", Index: shop.Index,
		UserToken: eveningToken}
	var carts []api.Event
	for _, id := range liked {
		cart := event
		cart.ObjectIDs = []string{id}
		carts = append(carts, cart)
	}
	if err := d.c.Events().Send(ctx, carts...); err != nil {
		return fmt.Errorf("send the events of the phone: %w", err)
	}
	if _, err := d.await(ctx, eveningToken, func(api.Profile) bool { return true }); err != nil {
		return err
	}
	event.EventType, event.EventSubtype, event.EventName = "view", "", "Product Viewed"
	event.AuthenticatedUserToken, event.ObjectIDs = user, liked[:1]
	if err := d.c.Events().Send(ctx, event); err != nil {
		return fmt.Errorf("send the sign-in: %w", err)
	}
	return nil
}

// shows waits until what a user thinks of the brand is ready, prints it with the first products of the page, and
// returns it.
func (d *demo) shows(ctx context.Context, when, user string, page []shop.Object,
	ready func(score float64) bool) (score float64, err error) {
	ids, names := make([]string, len(page)), map[string]string{}
	for i, o := range page {
		ids[i], names[o.ObjectID] = o.ObjectID, o.Name
	}
	err = cli.Poll(ctx, demoTimeout, func() (bool, error) {
		p, err := d.c.Profiles().Get(ctx, user, api.ProfileQuery{Limit: math.MaxInt32})
		score = scoreOf(p)
		return err == nil && ready(score), err
	})
	if err != nil {
		return 0, fmt.Errorf("wait for the profile of %s: %w", user, err)
	}
	answer, err := d.c.Rank(ctx, api.RankRequest{UserToken: user, Index: shop.Index, ObjectIDs: ids})
	if err != nil {
		return 0, fmt.Errorf("order the page for %s: %w", user, err)
	}
	var first []string
	for _, item := range answer.Items[:min(eveningShown, len(answer.Items))] {
		first = append(first, names[item.ObjectID])
	}
	d.print("  %-10s %5.0f  %s", when, score, strings.Join(first, ", "))
	return score, nil
}

// scoreOf is what a profile says of the brand.
func scoreOf(p api.Profile) float64 {
	for _, a := range p.Affinities {
		if a.Facet == "brand" && a.Value == eveningBrand {
			return a.Score
		}
	}
	return 0
}
