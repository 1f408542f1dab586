package engines

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"github.com/affinityengine/affinity/shared/local/boosttest"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/simulate"
)

var (
	profiles = flag.Int("profiles", race.Or(1000, 300), "how many random profiles each engine is tested with")
	seed     = flag.Uint64("seed", 1, "where random documents and profiles start")
)

// documents is how many documents each engine searches.
const documents = 300

// top is how many of them are compared.
const top = 10

func random() *rand.Rand { return rand.New(rand.NewPCG(*seed, 0)) }

// engine is a program that reads lines of JSON and answers each with one line.
type engine struct {
	in  *json.Encoder
	out *bufio.Scanner
}

// start starts a program; it ends when its input does.
func start(t *testing.T, command *exec.Cmd) engine {
	t.Helper()
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if _, err := io.Copy(io.Discard, out); err != nil {
			t.Error(err)
		}
		if err := command.Wait(); err != nil {
			t.Error(err)
		}
	})
	e := engine{json.NewEncoder(in), bufio.NewScanner(out)}
	e.out.Buffer(nil, 1<<24)
	return e
}

// search returns the hits of one search.
func (e engine) search(request any) ([]simulate.Hit, error) {
	if err := e.in.Encode(request); err != nil {
		return nil, err
	}
	if !e.out.Scan() {
		return nil, fmt.Errorf("the program ended: %w", e.out.Err())
	}
	var answer struct {
		Hits  [][2]any `json:"hits"`
		Error string   `json:"error"`
	}
	if err := json.Unmarshal(e.out.Bytes(), &answer); err != nil {
		return nil, fmt.Errorf("%w: %s", err, e.out.Bytes())
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("the program says: %s", answer.Error)
	}
	hits := make([]simulate.Hit, len(answer.Hits))
	for i, h := range answer.Hits {
		hits[i] = simulate.Hit{ID: h[0].(string), Score: h[1].(float64)}
	}
	return hits, nil
}

// texts are searches with the engine's own score of each document that matches.
type texts struct {
	words  []string
	scores []map[string]float64
}

func (s texts) any(r *rand.Rand) (words string, scores map[string]float64) {
	at := r.IntN(len(s.words))
	return s.words[at], s.scores[at]
}

// plain asks an engine for its scores without a boost.
func plain(t *testing.T, r *rand.Rand, search func(words string) ([]simulate.Hit, error)) texts {
	t.Helper()
	var s texts
	for range 10 {
		words := boosttest.Search(r)
		hits, err := search(words)
		if err != nil {
			t.Fatal(err)
		}
		if len(hits) < 2*top {
			t.Fatalf("%q finds %d documents, too few for a test", words, len(hits))
		}
		scores := map[string]float64{}
		for _, h := range hits {
			scores[h.ID] = h.Score
		}
		s.words, s.scores = append(s.words, words), append(s.scores, scores)
	}
	return s
}
