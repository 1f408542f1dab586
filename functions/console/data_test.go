package console

import (
	"bytes"
	"fmt"
	"log/slog"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// The requests of an import are few, whatever its file holds.
func TestImportMakesFewRequests(t *testing.T) {
	for name, test := range map[string]struct {
		text     string
		requests int
		says     string
	}{
		"bad lines":             {strings.Repeat("x\n", 1_000_000), 1, "0 lines accepted, 2,000 refused"},
		"blank lines":           {strings.Repeat("\n", 8_000_000), 100, "a page sends no more than 200,000 lines. The first 200,000 lines were read"},
		"bad lines here, there": {strings.Repeat("x\n"+strings.Repeat("\n", 9), 100_000), 5, "0 lines accepted, 1,000 refused"},
		"fewer bad lines":       {strings.Repeat("x\n", 999) + strings.Repeat("\n", 10_000), 6, "0 lines accepted, 999 refused"},
	} {
		h := newTest(t)
		c, csrf := h.login(testKey)
		requests := 0
		h.Handler = New(Options{Log: slog.New(slog.DiscardHandler), Auth: h.auth, Secret: h.secret, Now: time.Now, API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			body, err := httpapi.ReadBody(w, r, api.MaxImportBody)
			if err != nil {
				t.Error(err)
			}
			answer := api.ImportAnswer{Refused: []api.RefusedLine{}}
			for i, line := range bytes.Split(body, []byte("\n")) {
				if len(line) > 0 {
					answer.Refused = append(answer.Refused, api.RefusedLine{Line: i + 1, Message: "bad"})
				}
			}
			_ = httpapi.WriteJSON(w, http.StatusOK, answer)
		})})
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		_ = form.WriteField("csrf", csrf)
		file, _ := form.CreateFormFile("file", "events.ndjson")
		_, _ = fmt.Fprint(file, test.text)
		_ = form.Close()
		w := h.do("POST", "/console/data/import", body.String(), as(c), header("Content-Type", form.FormDataContentType()))
		page := w.Body.String()
		if w.Code != http.StatusOK || requests != test.requests || !strings.Contains(page, test.says) {
			t.Errorf("%s: %d after %d requests, want %d and %q: %s", name, w.Code, requests, test.requests, test.says, page)
		}
		if n := strings.Count(page, `<td class="n">`); n > shownLines {
			t.Errorf("%s: %d refused lines are shown", name, n)
		}
		if early := strings.Contains(page, "ended early"); early != (name != "fewer bad lines") {
			t.Errorf("%s: ended early: %t", name, early)
		}
	}
}
