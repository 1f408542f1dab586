// Package countspb holds the filter counts of an event as a Protocol Buffers message.
// It is a package of its own because protoc-gen-go writes it. Only the benches use it;
// no table of a deployment holds such a message.
package countspb

//go:generate protoc --go_out=. --go_opt=paths=source_relative counts.proto
