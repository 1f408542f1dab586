// Package admin holds the commands about an app itself: app, settings, usage and
// audit-log. app creates apps and keys, sets limits and moves apps. On a deployed
// engine it uses Firestore, Bigtable and Cloud Tasks with the operator's credentials,
// on a local engine the operator's token.
//
// It is a package of its own because no other command uses a deployed engine's
// databases. It keeps nothing.
package admin
