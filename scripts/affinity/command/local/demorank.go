package local

import (
	"context"
	"fmt"
	"slices"

	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/scripts/affinity/shop"
	"github.com/affinityengine/affinity/shared/api"
)

// Places in a department of the products that the demo's page shows: one of its
// first brand in blue and one in yellow.
var pagePlaces = []int{6, 15}

// pageDepartments is how many departments are on the page.
const pageDepartments = 5

// page lists the products of a page of the shop, in its order: departments in
// turn, the last one first.
func (d *demo) page() []shop.Object {
	var departments [][]shop.Object
	for _, o := range d.shop.Objects() {
		if n := len(departments); n == 0 || departments[n-1][0].Categories.Lvl0 != o.Categories.Lvl0 {
			departments = append(departments, nil)
		}
		departments[len(departments)-1] = append(departments[len(departments)-1], o)
	}
	var page []shop.Object
	for _, place := range pagePlaces {
		for _, department := range slices.Backward(departments[:min(pageDepartments, len(departments))]) {
			page = append(page, department[place])
		}
	}
	return page
}

// reorder prints one page in its own order and as it is for each of the two
// people, with the reason for each place.
func (d *demo) reorder(ctx context.Context) error {
	page := d.page()
	before, names := make([]string, len(page)), map[string]string{}
	for i, o := range page {
		before[i], names[o.ObjectID] = o.ObjectID, o.Name
	}
	d.print("")
	d.print("%s for each of the two by POST /1/rank", d.colors.Bold("one page, ordered"))
	for _, id := range shownPersonas {
		user := shop.UserToken(id, 0)
		answer, err := d.c.Rank(ctx, api.RankRequest{UserToken: user, Index: shop.Index, ObjectIDs: before, Explain: true})
		if err != nil {
			return fmt.Errorf("order the page for %s: %w", user, err)
		}
		persona, _ := d.shop.Persona(id)
		d.print("")
		d.print("%s, who %s:", d.colors.Bold("the "+persona.ID), persona.Taste)
		if err := render.Reordered(d.t.Out, answer, before, names); err != nil {
			return fmt.Errorf("print the order for %s: %w", user, err)
		}
	}
	return nil
}
