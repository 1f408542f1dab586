package track_test

import (
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/api/track"
	"github.com/affinityengine/affinity/shared/local/must"
)

func named(t *testing.T, name string) track.Call {
	t.Helper()
	c, err := track.Parse([]byte(`{"type":"track","event":"` + name + `","userId":"ann","properties":{"id":"own","sku":"s","products":[{"id":"own2","sku":"s2"}]}}`))
	must.Succeed(t, err)
	return c
}

// Each name of Segment's specification, and each that version 2 lists as another name of its
// own, has a type or a reason of its own.
func TestNamesOfTheSpecification(t *testing.T) {
	for kind, names := range map[string]string{
		"view": "Product List Viewed, Product List Filtered, Product Viewed, Cart Viewed, Viewed Product Category, Viewed Product",
		"click": "Product Clicked, Product Added, Checkout Started, Product Added to Wishlist, Wishlist Product Added to Cart, Product Shared, " +
			"Cart Shared, Product Reviewed, Clicked Product, Added Product, Started Order",
		"conversion": "Order Completed, Completed Order",
		"": "Products Searched, Promotion Viewed, Promotion Clicked, Product Removed, Checkout Step Viewed, Checkout Step Completed, " +
			"Payment Info Entered, Order Updated, Order Refunded, Order Cancelled, Coupon Entered, Coupon Applied, Coupon Denied, Coupon Removed, " +
			"Product Removed from Wishlist, Removed Product, Viewed Promotion, Clicked Promotion, Viewed Checkout Step, Completed Checkout Step, Updated Order",
	} {
		for _, name := range strings.Split(names, ", ") {
			c := named(t, name)
			if c.EventType != kind || c.Name != name {
				t.Errorf("%s: %q of type %q, want %q", name, c.Name, c.EventType, kind)
			}
			if reason := c.Ignored(); (kind == "") != strings.HasPrefix(reason, "Ignored: "+name+" call: ") {
				t.Errorf("%s: the reason is %q", name, reason)
			}
		}
	}
}

// White space and case are not part of a name of the specification, and white space is not
// part of any.
func TestNamesWithSpacesAndInOtherCase(t *testing.T) {
	for written, want := range map[string]string{
		"Product Viewed ": "Product Viewed", "\\tProduct  Viewed\\n": "Product Viewed", "product viewed": "Product Viewed", "ORDER COMPLETED": "Order Completed",
		"Product removed from wishlist": "Product Removed from Wishlist", " Recipe  saved ": "Recipe saved", "recipe saved": "recipe saved", "": "", " ": "",
	} {
		if c := named(t, written); c.Name != want {
			t.Errorf("%q is called %q, want %q", written, c.Name, want)
		}
	}
}

// The id of a product is id in version 1 of the specification, and no object in version 2.
func TestIDOfProducts(t *testing.T) {
	for name, want := range map[string]string{"Viewed Product": "own own2", "Product Viewed": "s s2", "Mine": "s s2"} {
		if c := named(t, name); strings.Join(c.ObjectIDs, " ") != want {
			t.Errorf("%s names %v, want %s", name, c.ObjectIDs, want)
		}
	}
}

// The type of the call itself counts most, then that of the app, then that of the
// specification.
func TestTypesOfTheApp(t *testing.T) {
	names := map[string]string{"Recipe Saved": "conversion", "Product Viewed": "click", "product clicked": "view", "Coupon Entered": "click"}
	for written, want := range map[string]string{
		"Recipe Saved": "conversion Recipe Saved", " Recipe  Saved": "conversion Recipe Saved", "recipe saved": " recipe saved",
		"Product Viewed": "click Product Viewed", "product clicked": "view product clicked", "Product Clicked": "click Product Clicked",
		"Coupon Entered": "click Coupon Entered", "Coupon Denied": " Coupon Denied",
	} {
		c := named(t, written).Typed(names)
		if got := c.EventType + " " + c.Name; got != want {
			t.Errorf("%q: %q, want %q", written, got, want)
		}
		if c.Ignored() != "" && c.Name != "Coupon Denied" {
			t.Errorf("%q: %s", written, c.Ignored())
		}
	}
	c, err := track.Parse([]byte(`{"type":"track","event":"Recipe Saved","properties":{"event_type":"view"}}`))
	if must.Succeed(t, err); c.Typed(names).EventType != "view" {
		t.Errorf("the call says view and is %q", c.Typed(names).EventType)
	}
}

func TestClosestName(t *testing.T) {
	own := map[string]string{"Recipe Saved": "conversion"}
	for name, want := range map[string]string{
		"Prodcut Viewed": "Product Viewed view", "product_viewed": "Product Viewed view", "productViewed": "Product Viewed view", "Products Viewed": "Product Viewed view",
		"Order Complete": "Order Completed conversion", "recipe saved": "Recipe Saved conversion", "Recipes Saved!": "Recipe Saved conversion", "Wish List Product Added": " ",
		"Signed Up": " ", "": " ", "x": " ", strings.Repeat("Product Viewed ", 1000): " ", "Käufe": " ", "Coupon Enterd": " ",
	} {
		closest, kind := track.Closest(name, own)
		if got := closest + " " + kind; got != want {
			t.Errorf("%.50q: %q, want %q", name, got, want)
		}
	}
}
