package importer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/api"
)

// isConsents reports whether a line says what a user has said of purposes.
func isConsents(text []byte) bool { return bytes.HasPrefix(text, []byte(`{"exportedConsents":`)) }

// checkPurposes refuses a dump before the first line of a user if the app lacks a purpose of it: events would count
// there for what their users have not granted.
func (d *dump) checkPurposes(ctx context.Context) error {
	if len(d.done.App.Purposes) == 0 || d.im.Checks() {
		return nil
	}
	app, err := d.client.AppSettings(ctx, api.AppSettingsQuery{Limit: 1})
	if err != nil {
		return err
	}
	for _, p := range d.done.App.Purposes {
		if slices.ContainsFunc(app.Purposes, func(o api.AppPurpose) bool { return o.Name == p.Name }) {
			continue
		}
		list, err := json.Marshal(d.done.App.Purposes)
		if err != nil {
			return err
		}
		return fmt.Errorf("the app %s has no purpose %q, and users have said of it what they grant: write the purposes of "+
			"the dump to a file, run affinity app purposes %s --file FILE, and then the same command again:\n%s",
			app.ID, p.Name, app.ID, list)
	}
	return nil
}

// consented restores what users have said of purposes, before all events: these count by it.
type consented struct {
	*dump
	m     *meter
	lines []byte
	from  []int // the numbers of lines
}

// maxConsented is how many lines a request has.
const maxConsented = 1000

func (c *consented) add(ctx context.Context, l line) error {
	c.im.lines.add(Tally{Read: 1})
	c.lines, c.from = append(append(c.lines, l.text...), '\n'), append(c.from, l.number)
	if len(c.from) < maxConsented {
		return nil
	}
	return c.flush(ctx)
}

func (c *consented) flush(ctx context.Context) error {
	if len(c.from) == 0 {
		return nil
	}
	var answer api.ImportAnswer
	var err error
	if c.im.Checks() {
		answer = checkRestored(c.lines, time.Now())
	} else {
		answer, err = c.client.Events().Restore(ctx, c.lines)
	}
	if err != nil {
		return fmt.Errorf("restore line %d of %s: %w", c.from[0], c.src.name, err)
	}
	c.im.lines.add(Tally{Imported: answer.UserConsents})
	c.done.Events.UserConsents += answer.UserConsents
	for _, r := range answer.Refused {
		c.im.lines.refuse(c.m, c.src, c.from[r.Line-1], r.Message)
	}
	c.lines, c.from = c.lines[:0], c.from[:0]
	return nil
}
