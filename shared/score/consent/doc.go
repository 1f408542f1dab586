// Package consent says for which purposes an app may use the events of a user: what the app sets, what the user has
// granted or withdrawn, and which events and facets that leaves for each surface.
//
// It is pure, because writers, readers and exports of all packages must agree.
package consent
