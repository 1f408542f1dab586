package openapi_test

import (
	"encoding/json"
	"index/suffixarray"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/web/openapi"
)

// variable is what differs from one message of a kind to the next.
var variable = regexp.MustCompile("\"[^\"]*\"|[\\d,]*\\d|\\[[^\\]]*\\]|`|[{}]|\\.\\.\\.|%")

// TestDescribedMessages looks in the source for the words of every message that
// the document names, so that no error is described in words that the engine no
// longer uses.
func TestDescribedMessages(t *testing.T) {
	source := suffixarray.New([]byte(goSource(t, "../../../functions", "../..")))
	var doc struct {
		Paths map[string]map[string]struct {
			ID     string                     `json:"operationId"`
			Errors []struct{ Message string } `json:"x-errors"`
		} `json:"paths"`
	}
	must.Succeed(t, json.Unmarshal(openapi.Document(), &doc))
	missing := map[string]string{}
	for _, methods := range doc.Paths {
		for _, op := range methods {
			for _, e := range op.Errors {
				if !said(source, e.Message) {
					missing[e.Message] = op.ID
				}
			}
		}
	}
	for message, id := range missing {
		t.Errorf("%s: the engine has no message like %q", id, message)
	}
}

// said reports whether the source has a run of words of the message that is long
// beside its longest fixed part. The rest may be put in by the engine.
func said(source *suffixarray.Index, message string) bool {
	parts, longest := variable.Split(message, -1), 0
	for _, part := range parts {
		longest = max(longest, len(strings.TrimSpace(part)))
	}
	long := min(longest, max(8, longest*2/5))
	for _, part := range parts {
		words := strings.Fields(part)
		for i := range words {
			for j := len(words); j > i; j-- {
				if run := strings.Join(words[i:j], " "); len(run) >= long && source.Lookup([]byte(run), 1) != nil {
					return true
				}
			}
		}
	}
	return long == 0
}

// goSource is the text of all Go files below some folders, without tests.
func goSource(t *testing.T, dirs ...string) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		must.Succeed(t, err)
	}
	return all.String()
}
