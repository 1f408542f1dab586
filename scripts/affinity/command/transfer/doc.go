// Package transfer holds the commands that copy data into an app and out of it:
// import, catalog, index, wordpress, migrate, dump, restore and export. What they read
// and send is in the packages importer, wordpress and algolia.
//
// They are one package because they share how files are read, how lines are counted
// and how a busy engine is waited for. It keeps nothing but the files that a command
// names.
package transfer
