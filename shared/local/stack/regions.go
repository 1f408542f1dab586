package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
)

// regionsFile says in the data folder which region has which instance, in the order of the
// regions.
const regionsFile = "regions.json"

// regionalLife is how long a request or a task of a stack with regions may use Bigtable: a
// phase of a move waits as long.
const regionalLife = 30 * time.Second

// instanceOf is the Bigtable instance of a region but the first one.
func instanceOf(region string) string { return Instance + "-" + region }

// firstRegion is the name of the region of a stack that has sets of tables and no regions.
const firstRegion = "main"

// regions returns the regions of the stack: those of the options or, if these name none,
// those that the data folder has. The order is that of the first start.
func (s *Stack) regions(o Options) (config.Regions, error) {
	kept, err := s.keptRegions()
	if err != nil || len(o.Regions)+len(o.Tables) == 0 {
		return kept, err
	}
	names := o.Regions
	if len(names) == 0 {
		if names = kept.Whole().Names(); len(names) == 0 {
			names = []string{firstRegion}
		}
	}
	if first := kept.First(); first != "" && !slices.Contains(names, first) {
		return nil, fmt.Errorf("the data folder has the first region %s, in which apps live that name none: it "+
			"cannot be taken out", first)
	}
	all := slices.DeleteFunc(kept.Whole(), func(r config.Region) bool { return !slices.Contains(names, r.Name) })
	for _, name := range names {
		if _, ok := all.Find(name); ok && len(all) > 0 {
			continue
		}
		r := config.Region{Name: name, Instance: Instance}
		if len(all) > 0 {
			r.Instance, r.Location = instanceOf(name), name
		}
		all = append(all, r)
	}
	for _, r := range kept {
		if len(o.Tables) == 0 && slices.Contains(names, r.In) {
			all = append(all, r)
		}
	}
	for _, set := range o.Tables {
		in, name, ok := strings.Cut(set, "/")
		if !ok {
			in, name = all.First(), set
		}
		all = append(all, config.Region{Name: name, In: in})
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	var checked config.Regions
	err = checked.UnmarshalText(text)
	return checked, err
}

// keptRegions returns the regions that the data folder has.
func (s *Stack) keptRegions() (all config.Regions, err error) {
	text, err := s.disk.ReadFile(regionsFile)
	if err == nil {
		err = all.UnmarshalText(text)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read %s of the data folder: %w", regionsFile, err)
	}
	return all, nil
}

// settle checks that every app has its region, and keeps the regions in the data folder.
func (s *Stack) settle(ctx context.Context, apps *config.Store, regions config.Regions) error {
	ids, err := apps.Apps(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		app, err := apps.App(ctx, id)
		if err != nil {
			return err
		}
		for _, region := range []string{app.Region, app.Move.From, app.Move.To} {
			if err := regions.Check(region); err != nil {
				return fmt.Errorf("app %s has data in region %s: start with it (--regions %s, or --tables if it is a set "+
					"of tables), and move the app first", id, region,
					strings.Join(append(regions.Whole().Names(), region), ","))
			}
		}
	}
	if len(regions) == 0 {
		return nil
	}
	text, err := json.Marshal(regions)
	if err != nil {
		return err
	}
	return s.disk.WriteFile(regionsFile, text)
}

// regionNames returns the names of the regions; one that is empty if there are none.
func regionNames(r config.Regions) []string {
	if len(r) == 0 {
		return []string{""}
	}
	return r.Names()
}
