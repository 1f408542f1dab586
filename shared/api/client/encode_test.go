package client_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// A record is sent without escapes for HTML, which would make it longer.
func TestRecordIsNotEscaped(t *testing.T) {
	var sent string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = string(body)
		_, _ = io.WriteString(w, `{"objectIDs":["1"],"taskID":1}`)
	}))
	defer server.Close()
	c, err := client.New(client.Config{URL: server.URL, App: "demo", Key: "demokey"})
	if err != nil {
		t.Fatal(err)
	}
	record := `{"objectID":"1","title":"<b>Salt & Pepper</b>"}`
	if _, err := c.Catalog().Batch(t.Context(), "i", api.BatchAction{Action: api.ActionAddObject, Body: []byte(record)}); err != nil {
		t.Fatal(err)
	}
	if want := `{"requests":[{"action":"addObject","body":` + record + `}]}`; sent != want {
		t.Errorf("sent %s, want %s", sent, want)
	}
}
