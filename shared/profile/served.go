package profile

import (
	"context"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// An app may serve an anonymous token as the known user who has signed in under it. The row of the
// token says who that is, and the answer comes from the row of the known user. It is not copied into the row of
// the token: who holds that may be anybody.

// Read is Engine.Read, of the known user who has signed in under the token if the app serves it so.
func (i Identities) Read(ctx context.Context, app config.App, token string, limit int) (Result, error) {
	if !app.Identity.Serves() {
		return i.engine.Read(ctx, app, token, limit)
	}
	return i.readServed(ctx, app, token, store.UserProfile, limit)
}

// ReadRanking is Engine.ReadRanking, of the known user who has signed in under the token if the
// app serves it so.
func (i Identities) ReadRanking(ctx context.Context, app config.App, token string) (Result, error) {
	if !app.Identity.Serves() {
		return i.engine.ReadRanking(ctx, app, token)
	}
	return i.readServed(ctx, app, token, store.UserSession, 0)
}

// ComputeRanking is Engine.ComputeRanking, of the known user who has signed in under the token if
// the app serves it so.
func (i Identities) ComputeRanking(ctx context.Context, app config.App, token string,
	c *affinity.Compiled) (Result, error) {
	if !app.Identity.Serves() {
		return i.engine.ComputeRanking(ctx, app, token, c)
	}
	at, err := i.engine.at(app)
	if err != nil {
		return Result{}, err
	}
	if app.Owned() {
		result, of, err := enRoute{at}.servedBy(ctx, app, token, func(of string) (Result, error) {
			return enRoute{at}.ask(ctx, app, of, question{compiled: c, why: forReading})
		})
		return result.servedTo(token, of), err
	}
	of, row, err := at.reader.standIn(ctx, app, token, store.UserHistory, at.env.store.Users.ReadPrimary)
	if err != nil {
		return Result{}, err
	}
	result, err := at.reader.answer(ctx, app, of, row, question{compiled: c, why: forReading})
	return result.servedTo(token, of), err
}

func (i Identities) readServed(ctx context.Context, app config.App, token string, parts store.UserParts,
	limit int) (Result, error) {
	at, err := i.engine.at(app)
	if err != nil {
		return Result{}, err
	}
	if app.Owned() {
		result, of, err := enRoute{at}.servedBy(ctx, app, token, func(of string) (Result, error) {
			return enRoute{at}.read(ctx, app, of, parts, limit)
		})
		return result.servedTo(token, of), err
	}
	read, written := at.reader.rowReader(app)
	of, row, err := at.reader.standIn(ctx, app, token, parts, read)
	if err != nil {
		return Result{}, err
	}
	result, err := at.reader.readFrom(ctx, app, of, row, written, parts, limit)
	return result.servedTo(token, of), err
}

// servedBy calls read with the user whose profile is served to a token, or with the token itself.
func (e enRoute) servedBy(ctx context.Context, app config.App, token string,
	read func(of string) (Result, error)) (result Result, of string, err error) {
	row := func(ctx context.Context, _, user string, parts store.UserParts) (store.User, error) {
		found, err := e.locate(ctx, app, user, parts)
		return found.row, err
	}
	if of, _, err = e.reader.standIn(ctx, app, token, store.UserState, row); err != nil {
		return Result{}, "", err
	}
	result, err = read(of)
	return result, of, err
}

// servedTo says whose profile is served to a token.
func (r Result) servedTo(token, of string) Result {
	if of != token {
		r.Of = of
	}
	return r
}

// standIn reads the row of a token. It returns the known user whose profile is served to it, and their
// row; or the token and its own.
func (r *reader) standIn(ctx context.Context, app config.App, token string, parts store.UserParts,
	read rowReaderOf) (of string, row store.User, err error) {
	own, err := read(ctx, app.ID, token, parts)
	if err != nil || len(own.Links) == 0 {
		return token, own, err
	}
	cell, err := linksOf(app.ID, token, own)
	if err != nil {
		return "", store.User{}, err
	}
	e, open := cell.SignedIn()
	if !open {
		return token, own, nil
	}
	if row, err = read(ctx, app.ID, e.Known, parts); err != nil {
		return "", store.User{}, err
	}
	if !e.Counts(exclusionOf(own), exclusionOf(row)) { // a deletion or an opt-out has ended the link
		return token, own, nil
	}
	return e.Known, row, nil
}
