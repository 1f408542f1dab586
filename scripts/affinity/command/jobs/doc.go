// Package jobs holds the commands about work over all users of an app, which the
// engine does: recompute, reenrich, crowd, schema and audit. They start it, watch it
// and cancel it. It keeps nothing.
package jobs
