// Command realdata converts the public data of two real shops into the files that
// `affinity try`, `backtest` and `tune` read: those of README's table of lifts.
//
//	go run ./scripts/bench/realdata clickstream 'e-shop clothing 2008.csv' DIR
//	go run ./scripts/bench/realdata onlineretail 'Online Retail.csv' DIR
//
// It writes events.ndjson.gz, objects.ndjson.gz and strategy.json to DIR. The files
// are not part of the project, since the data is others': functions/docs/guides/lift.md
// says where it comes from, and under which licence.
//
// It is separate from the affinity command because only readers of that table need
// it.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// event and object are lines of the files. Objects differ by shop.
type event struct {
	EventType string   `json:"eventType"`
	EventName string   `json:"eventName"`
	UserToken string   `json:"userToken"`
	Timestamp int64    `json:"timestamp"` // ms
	ObjectIDs []string `json:"objectIDs"`
}

// shop is what is converted.
type shop struct {
	sum      string // SHA-256 of the source, in hexadecimal; empty: it has several forms
	convert  func(io.Reader) (events []event, objects []any, err error)
	strategy string
}

var shops = map[string]shop{
	"clickstream":  {"63ce0c05b93d31837ce10b8734dae6d8e2e49aaef3beb8c5e8af391799d9b7e6", clickstream, clickstreamStrategy},
	"onlineretail": {"", onlineRetail, onlineRetailStrategy},
}

func main() {
	if len(os.Args) != 4 || shops[os.Args[1]].convert == nil {
		fmt.Fprintln(os.Stderr, "usage: go run ./scripts/bench/realdata clickstream|onlineretail FILE.csv DIR")
		os.Exit(2)
	}
	if err := run(shops[os.Args[1]], os.Args[2], os.Args[3], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "realdata:", err)
		os.Exit(1)
	}
}

// run converts a file into the files of a directory.
func run(s shop, path, dir string, out io.Writer) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the source: %w", err)
	}
	sum := sha256.Sum256(text)
	if got := hex.EncodeToString(sum[:]); s.sum != "" && got != s.sum {
		return fmt.Errorf("%s has %d bytes and the SHA-256 %s, want %s: it is another file, or was changed", path,
			len(text), got, s.sum)
	}
	events, objects, err := s.convert(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the directory: %w", err)
	}
	if err := write(filepath.Join(dir, "events.ndjson.gz"), events); err != nil {
		return err
	}
	if err := write(filepath.Join(dir, "objects.ndjson.gz"), objects); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "strategy.json"), []byte(s.strategy), 0o644); err != nil {
		return fmt.Errorf("write the strategy: %w", err)
	}
	_, err = fmt.Fprintf(out, "%d events and %d objects are in %s\n", len(events), len(objects), dir)
	return err
}

// write writes a line of JSON for each value.
func write[T any](path string, values []T) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	packed := gzip.NewWriter(file)
	defer func() { err = errors.Join(err, packed.Close()) }()
	return encode(packed, values)
}

func encode[T any](out io.Writer, values []T) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	for _, v := range values {
		if err := e.Encode(v); err != nil {
			return err
		}
	}
	return nil
}

// The strategies of README's table.
const (
	clickstreamStrategy = `{
  "eventsScoring": [
    {"eventType": "click", "eventName": "Product Clicked", "score": 10},
    {"eventType": "click", "eventName": "Sale Product Clicked", "score": 15},
    {"eventType": "click", "eventName": "Product Clicked Again", "score": 30}
  ],
  "facetsScoring": [
    {"facetName": "category", "score": 100},
    {"facetName": "colour", "score": 80},
    {"facetName": "price_range", "score": 50},
    {"facetName": "photo", "score": 20}
  ]
}
`
	onlineRetailStrategy = `{
  "eventsScoring": [
    {"eventType": "conversion", "eventName": "Products Purchased", "score": 50}
  ],
  "facetsScoring": [
    {"facetName": "colour", "score": 100},
    {"facetName": "material", "score": 60},
    {"facetName": "price_range", "score": 30},
    {"facetName": "keywords", "score": 5}
  ]
}
`
)
