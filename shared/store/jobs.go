package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"
)

// The details of jobs are what jobs and their shards say of users: ranges of tokens,
// places, faults, results, errors. Their documents, which have no region, hold the rest.
// Package job says how both change together. Here a row is a job or a shard, by a name
// that package job makes, and a column is one version of its details. The writer of a
// version names it at random, and nobody writes it a second time.
//
// What may still change is in a family of its own, because it must last until the job
// ends, however long that takes. Details of what has ended have the age of its document.

func jobsKey(app, row string) string { return app + "," + row }

// Details of a shard that names users of one region of an app whose users live in regions of their own lie in that
// region. The region is empty for all others: they lie where the app's own rows do.

// at calls do with the stores of a region of an app.
func (s Jobs) at(app, region string, do func(*Store) error) error {
	if region == "" {
		return s.each(app, do)
	}
	return do(s.In(region))
}

// PutJobDetails stores a version of the details of a row. ended says that it is the last.
func (s Jobs) PutJobDetails(ctx context.Context, app, region, row, version string, ended bool, details []byte) error {
	family, m := familyOpen, bigtable.NewMutation()
	if ended {
		family = familyEnded
	}
	m.Set(family, version, bigtable.Now(), details)
	return s.changeJobDetails(ctx, app, region, row, m)
}

// DropJobDetails deletes versions of the details of a row.
func (s Jobs) DropJobDetails(ctx context.Context, app, region, row string, versions ...string) error {
	m := bigtable.NewMutation()
	for _, version := range versions {
		m.DeleteCellsInColumn(familyOpen, version)
		m.DeleteCellsInColumn(familyEnded, version)
	}
	return s.changeJobDetails(ctx, app, region, row, m)
}

// DropOpenJobDetails deletes the versions of a row that are not the last, once the last
// is the valid one.
func (s Jobs) DropOpenJobDetails(ctx context.Context, app, region, row string) error {
	m := bigtable.NewMutation()
	m.DeleteCellsInFamily(familyOpen)
	return s.changeJobDetails(ctx, app, region, row, m)
}

func (s Jobs) changeJobDetails(ctx context.Context, app, region, row string, m *bigtable.Mutation) error {
	return s.at(app, region, func(s *Store) error {
		if err := s.tables.of(app, allUsers).jobs.Apply(ctx, jobsKey(app, row), m); err != nil {
			return fmt.Errorf("write details of job %s of %s: %w", row, app, err)
		}
		return nil
	})
}

// jobRows is how many rows one request reads. Their keys must fit into it.
const jobRows = 500

// JobDetails returns one version of the details of each row, by row. It leaves out rows
// that do not have the version.
func (s Jobs) JobDetails(ctx context.Context, app, region string,
	versions map[string]string) (map[string][]byte, error) {
	table, found := s.In(region).tables.of(app, allUsers).jobs, map[string][]byte{}
	take := func(r bigtable.Row) bool {
		row := strings.TrimPrefix(r.Key(), jobsKey(app, ""))
		for family, cells := range r {
			for _, cell := range cells {
				if strings.TrimPrefix(cell.Column, family+":") == versions[row] {
					found[row] = cell.Value
				}
			}
		}
		return true
	}
	for rows := range slices.Chunk(slices.Sorted(maps.Keys(versions)), jobRows) {
		keys := make(bigtable.RowList, len(rows))
		for i, row := range rows {
			keys[i] = jobsKey(app, row)
		}
		if err := table.ReadRows(ctx, keys, take, newestCells); err != nil {
			return nil, fmt.Errorf("read details of jobs of %s: %w", app, err)
		}
	}
	return found, nil
}

// ForgetJobDetails deletes the rows of an app whose names begin with a prefix, in all regions in which its users may
// be.
func (s Jobs) ForgetJobDetails(ctx context.Context, app, prefix string) error {
	return s.everywhere(app, func(s *Store) error { return s.forgetJobDetails(ctx, app, prefix) })
}

func (s *Store) forgetJobDetails(ctx context.Context, app, prefix string) error {
	table, rows := s.tables.of(app, allUsers).jobs, bigtable.PrefixRange(jobsKey(app, prefix))
	for {
		keys, err := scanKeys(ctx, table, rows, bulkRows)
		if err == nil {
			err = deleteKeys(ctx, table, keys)
		}
		if err != nil {
			return fmt.Errorf("delete details of jobs of %s: %w", app, err)
		}
		if len(keys) < bulkRows {
			return nil
		}
	}
}
