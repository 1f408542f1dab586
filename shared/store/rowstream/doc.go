// Package rowstream reads many rows of Bigtable with less work for each. Bigtable
// sends a row as chunks of cells in protocol buffers. The client library makes a
// message of each chunk, and a map and some strings of each row. This package finds the
// cells in the bytes that gRPC received, and passes them on in place.
//
// The library stays in charge of everything else: connections, credentials, headers,
// deadlines, and which request is tried again when. An interceptor of streams replaces
// only the decoding of an answer. To the library the answer is then empty, or one
// message that names the last row (last_scanned_row_key), after which the library
// resumes. A client without the interceptor, as on a connection of the caller's own,
// decodes by itself, and Read passes on its rows in the same form.
//
// A second interceptor, InterceptWrites, encodes requests that write many rows in a
// third of the time (BenchmarkEncodeRows).
//
// A Point reads single rows with less work for each read: a page waits for it. The library
// makes some 230 allocations for a row, most of them to build the same request and the same
// headers again, and a Point 100 (BenchmarkStoredRead in package stack: 0.15 ms in place of
// 0.19 on 2 idle cores, 23 November 2026). A Point sends what the library sends, on the
// library's connections, and leaves it an attempt that fails. The library's pool does not
// count these streams. It may so close a connection under one of them, when it replaces the
// connection after some three quarters of an hour: that attempt fails and is made again.
//
// Reads in reverse order, and labels of cells, are not supported.
//
// Measured side by side on 2 idle cores (affinity bench recompute, 22 November 2026,
// medians of three runs), a recompute without writes takes less of the client's CPU than with
// the library's decoding: 41 % at 7 events a user, 49 % at 30, 37 % at 500. With writes
// it is 32 %, 23 % and 37 %, and less time without writes: 12 %, 30 % and 37 %. At 7
// events a user, one costs 21 allocations in place of 83. Delete the package when the
// library's reader comes within a tenth of it: Read works without intercept.
package rowstream
