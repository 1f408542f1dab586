package attack

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/affinityengine/affinity/shared/api"
)

// Lag is the time in ms from when an event was sent until a read shows it.
type Lag struct {
	Probes int     `json:"probes"`
	P50    float64 `json:"p50"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
	// Sent is the p99 of the time until ingest accepted the event, in ms.
	Sent float64 `json:"sentP99"`
	// Lost are the events that no read showed within lostAfter.
	Lost int `json:"lost"`
}

const lostAfter = time.Minute

// prober sends events of new users of the good app, and waits for their profiles.
type prober struct {
	*target
	rate float64
	n    int
}

// during probes while do runs. It returns what the probes saw that began before do
// ended. It ends at once if the engine dies.
func (p *prober) during(ctx context.Context, e *Engine, do func(context.Context) error) (Lag, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(e.alive, cancel)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	var lags, sent []time.Duration
	var lost int
	var mu sync.Mutex
	var running sync.WaitGroup
	tick := time.NewTicker(time.Duration(float64(time.Second) / p.rate))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.n++
			user := fmt.Sprintf("probe-%d", p.n)
			running.Go(func() {
				accepted, took, err := p.probe(ctx, user)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					lags, sent = append(lags, took), append(sent, accepted)
				} else if ctx.Err() == nil {
					lost++
				}
			})
		case err := <-done:
			running.Wait()
			return lagOf(lags, sent, lost), err
		}
	}
}

// probe returns how long an event takes until it is accepted, and until its user's
// profile shows it. A client sends again what is refused with 429, as this does.
func (p *prober) probe(ctx context.Context, user string) (accepted, shown time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, lostAfter)
	defer cancel()
	began := time.Now()
	for {
		err := p.good.Events().Send(ctx, api.Event{
			EventType: "view", EventName: "Seen", Index: "i", UserToken: user, Timestamp: began.UnixMilli(),
			Filters: []string{"color:Red"},
		})
		if err == nil {
			break
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return 0, 0, err
		}
	}
	accepted = time.Since(began)
	for {
		profile, err := p.good.Profiles().Get(ctx, user, api.ProfileQuery{})
		if took := time.Since(began); err == nil && len(profile.Affinities) == 1 {
			return accepted, took, nil
		} else if err := pause(ctx, min(20*time.Millisecond, max(2*time.Millisecond, took/10))); err != nil {
			return 0, 0, err
		}
	}
}

func lagOf(lags, sent []time.Duration, lost int) Lag {
	l := Lag{Probes: len(lags) + lost, Lost: lost}
	if len(lags) == 0 {
		return l
	}
	slices.Sort(lags)
	slices.Sort(sent)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	p99 := (len(lags)*99+99)/100 - 1
	l.P50, l.P99, l.Max = ms(lags[(len(lags)-1)/2]), ms(lags[p99]), ms(lags[len(lags)-1])
	l.Sent = ms(sent[p99])
	return l
}
