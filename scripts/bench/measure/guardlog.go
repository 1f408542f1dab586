package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/importer"
	"github.com/affinityengine/affinity/scripts/affinity/shop"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// read returns the log to draw on, and the strategy that tuning begins with.
func (o Guard) read(ctx context.Context) (log *backtest.Log, given strategy.Strategy, err error) {
	if len(o.Events) == 0 {
		log, err = shopLog()
		return log, guardStrategy(), err
	}
	if given, err = readStrategy(o.Strategy); err != nil {
		return nil, given, err
	}
	files := importer.Files{Index: o.Index, Now: time.Now()}
	open := func(path string) *importer.Source {
		source, failed := importer.Open(path, os.Stdin)
		err = errors.Join(err, failed)
		return source
	}
	files.Objects = open(o.Objects)
	for _, path := range o.Events {
		files.Events = append(files.Events, open(path))
	}
	for _, source := range append(files.Events, files.Objects) {
		if source != nil {
			defer func() { err = errors.Join(err, source.Close()) }()
		}
	}
	if err != nil {
		return nil, given, err
	}
	log, leftOut, err := importer.ReadLog(ctx, files, io.Discard)
	if err == nil && leftOut > 0 {
		err = importer.LeftOutError(leftOut)
	}
	return log, given, err
}

// readStrategy reads a strategy file, which may lack the personalizationImpact: it
// changes no order of a log.
func readStrategy(path string) (strategy.Strategy, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return strategy.Strategy{}, fmt.Errorf("read the strategy: %w", err)
	}
	keys := map[string]json.RawMessage{"personalizationImpact": json.RawMessage("50")}
	if err := json.Unmarshal(text, &keys); err != nil {
		return strategy.Strategy{}, fmt.Errorf("the strategy %s is not a JSON object: %w", path, err)
	}
	if text, err = json.Marshal(keys); err != nil {
		return strategy.Strategy{}, fmt.Errorf("encode the strategy: %w", err)
	}
	s, err := strategy.Decode(text)
	if err != nil {
		return strategy.Strategy{}, fmt.Errorf("the strategy %s: %w", path, err)
	}
	return s, nil
}

// shopLog returns a month of the simulated shop.
func shopLog() (*backtest.Log, error) {
	simulated, facets := shop.New(1), catalog.Settings{AttributesForFaceting: shop.Facets,
		NumericBands: catalog.Bands{"price": shop.PriceBands}}
	var objects []backtest.Object
	for _, o := range simulated.Objects() {
		record, err := json.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("encode object %s: %w", o.ObjectID, err)
		}
		filters, err := catalog.Filters(record, facets)
		if err != nil {
			return nil, fmt.Errorf("filters of object %s: %w", o.ObjectID, err)
		}
		objects = append(objects, backtest.Object{ID: o.ObjectID, Filters: filters})
	}
	log, err := backtest.NewLog(shop.Index, objects)
	if err != nil {
		return nil, err
	}
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for i, e := range simulated.History(now) {
		log.Add(backtest.Event{User: e.UserToken, Time: e.Timestamp, ID: fmt.Sprint(i), Type: event.Type(e.EventType),
			Name: e.EventName, Index: e.Index, ObjectIDs: e.ObjectIDs})
	}
	return log, nil
}

// guardStrategy scores the shop's events as a merchant would at first.
func guardStrategy() strategy.Strategy {
	s := strategy.Strategy{PersonalizationImpact: 50, HalfLives: strategy.InDays(30)}
	for _, e := range []struct {
		typ   event.Type
		name  string
		score int
	}{
		{event.View, "Product Viewed", 5}, {event.Click, "Product Clicked", 10},
		{event.Conversion, "Added To Cart", 20}, {event.Conversion, "Order Completed", 30},
	} {
		s.EventsScoring = append(s.EventsScoring, strategy.EventScore{EventName: e.name, EventType: e.typ, Score: e.score})
	}
	for _, f := range []struct {
		name  string
		score int
	}{{"categories.lvl0", 100}, {"brand", 60}, {"color", 40}, {"price", 30}, {"tags", 20}} {
		s.FacetsScoring = append(s.FacetsScoring, strategy.FacetScore{FacetName: f.name, Score: f.score})
	}
	return s
}
