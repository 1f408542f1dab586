// Package local holds the commands about an engine on this machine: up, serve and demo
// start the whole engine in this process, and healthy waits until one is up. What an engine
// keeps is in the folder of --data, which data checks and repairs.
//
// It is a package of its own because it alone links the engine.
package local
