package console

import (
	"cmp"
	"encoding/json"
	"hash/fnv"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/cache"
)

// product is what a card shows of an object.
type product struct {
	Known    bool // the catalog holds it
	Name     string
	Brand    string
	Price    string
	Image    template.URL // of a picture; empty: none that a page shows
	Initials string
	Hue      int // of the tile that stands for a picture
}

// The attributes that name an object, its maker and its price, in the order in which they are
// looked for.
var (
	nameAttributes  = []string{"name", "title", "productName", "label", "headline"}
	brandAttributes = []string{"brand", "brand_name", "manufacturer", "author", "category", "categories"}
	priceAttributes = []string{"price", "price_range", "salePrice", "amount"}
	imageAttributes = []string{"image", "image_url", "imageUrl", "image_link", "thumbnail"}
)

// productOf reads what a card shows from a record.
func productOf(id string, record json.RawMessage) product {
	p := product{Known: record != nil}
	var attributes map[string]any
	if json.Unmarshal(record, &attributes) == nil {
		p.Name, p.Brand, p.Price = first(attributes, nameAttributes), first(attributes, brandAttributes),
			first(attributes, priceAttributes)
		p.Image = imageOf(first(attributes, imageAttributes))
	}
	p.Initials = initials(cmp.Or(p.Name, id))
	h := fnv.New32a()
	_, _ = h.Write([]byte(cmp.Or(p.Brand, id)))
	p.Hue = int(h.Sum32()>>8%16) * 22 // far enough apart to tell makers from each other
	return p
}

// maxImage is how many bytes the address of a picture has at most. A page has dozens.
const maxImage = 600

// imageData are the kinds of pictures that an address may hold itself. A page shows
// them as pictures, in which no script runs and which load nothing.
var imageData = []string{"data:image/svg+xml,", "data:image/svg+xml;", "data:image/png;base64,",
	"data:image/jpeg;base64,", "data:image/webp;base64,", "data:image/gif;base64,", "data:image/avif;base64,"}

// imageOf returns the address of a picture that a page may show: one over TLS, or one that holds the picture.
func imageOf(text string) template.URL {
	if len(text) > maxImage {
		return ""
	}
	for _, kind := range imageData {
		if strings.HasPrefix(text, kind) {
			return template.URL(text)
		}
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return ""
	}
	return template.URL(u.String())
}

// first is the first attribute that holds a text or a number.
func first(attributes map[string]any, names []string) string {
	for _, name := range names {
		if text := scalar(attributes[name]); text != "" {
			return text
		}
	}
	return ""
}

// scalar is the text of a value, or of the first one of a list or of a hierarchy.
func scalar(value any) string {
	switch value := value.(type) {
	case string:
		return strings.TrimSpace(value)
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	case []any:
		if len(value) > 0 {
			return scalar(value[0])
		}
	case map[string]any:
		return first(value, []string{"lvl0", "name", "value", "amount"})
	}
	return ""
}

// initials are the first letters of the first two words.
func initials(text string) string {
	var b strings.Builder
	n := 0
	for _, word := range strings.FieldsFunc(text,
		func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }) {
		for _, c := range word {
			b.WriteRune(unicode.ToUpper(c))
			break
		}
		if n++; n == 2 {
			break
		}
	}
	return b.String()
}

// products keeps what cards show for a short while, because each step of a slider shows nearly the
// same objects, and each reading of a record counts against the limits of the app. The permissions are
// checked before: by the ranking for the index, and by records for its readers. It is safe for
// concurrent use.
type products struct {
	now  func() time.Time
	kept cache.Map[productKey, keptProduct]
}

type productKey struct{ app, index, id string }

type keptProduct struct {
	product
	at time.Time
}

const (
	productLife  = 30 * time.Second
	keptProducts = 5000
	// productBytes bounds the texts of a product that is kept.
	productBytes = 1600
)

func newProducts(now func() time.Time) *products {
	return &products{now, cache.New[productKey, keptProduct](keptProducts)}
}

func (p *products) get(key productKey) (product, bool) {
	found, ok := p.kept.Get(key)
	return found.product, ok && p.now().Sub(found.at) < productLife
}

func (p *products) put(key productKey, of product) {
	if of.Known && len(key.index)+len(key.id)+len(of.Name)+len(of.Brand)+len(of.Price)+len(of.Image) <= productBytes {
		p.kept.Set(key, keptProduct{of, p.now()})
	}
}

// readers is how many records are read at the same time.
const readers = 8

// namesObjects are the features whose parts are objects.
var namesObjects = []string{"pairs", "sequence", "neighbours", "diversity"}

// records reads the objects that cards show, and those that reasons name.
func (s *simulation) records(v *visit, orders []api.RankAnswer) (map[string]product, error) {
	ids := append([]string{}, s.Form.IDs[:min(len(s.Form.IDs), maxCards)]...)
	for _, order := range orders {
		for _, item := range order.Items[:min(len(order.Items), maxCards)] {
			ids = append(ids, item.ObjectID)
			for _, f := range item.Features {
				if slices.Contains(namesObjects, f.Name) && len(f.Parts) > 0 {
					ids = append(ids, f.Parts[0].Name)
				}
			}
		}
	}
	s.Missing.Records = !v.may(mayReadRecords)
	shown, err := readProducts(v, s.Form.Index, once(ids), !s.Missing.Records)
	if err != nil {
		return nil, err
	}
	s.Missing.Catalog = !s.Missing.Records && len(ids) > 0
	for _, p := range shown {
		s.Missing.Catalog = s.Missing.Catalog && !p.Known
	}
	for _, id := range s.Form.IDs {
		if _, ok := shown[id]; !ok {
			shown[id] = productOf(id, nil)
		}
	}
	return shown, nil
}

// readProducts reads what cards show of objects. If the session may not, they have no records.
func readProducts(v *visit, index string, ids []string, may bool) (map[string]product, error) {
	all := make([]product, len(ids))
	group, ctx := errgroup.WithContext(v.Context())
	group.SetLimit(readers)
	for i, id := range ids {
		key := productKey{v.session.App, index, id}
		if kept, ok := v.console.products.get(key); ok && may {
			all[i] = kept
			continue
		}
		group.Go(func() (err error) {
			var record json.RawMessage
			if may {
				record, err = v.engine.Catalog().Get(ctx, index, id)
			}
			if err != nil && !isRefusal(err) {
				return err
			}
			all[i] = productOf(id, record)
			v.console.products.put(key, all[i])
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	read := 0
	v.made.keep(func(c call) bool { // the first record stands for all
		if strings.HasPrefix(c.Path, "/1/indexes/") {
			read++
		}
		return read <= 1 || !strings.HasPrefix(c.Path, "/1/indexes/")
	})
	shown := map[string]product{}
	for i, id := range ids {
		shown[id] = all[i]
	}
	return shown, nil
}
