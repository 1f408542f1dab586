package admission_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
)

// enter begins a request of the gate, which the test's end does not end.
func enter(t *testing.T, g *admission.Gate) (context.Context, func()) {
	t.Helper()
	return g.Enter(t.Context())
}

func take(t *testing.T, what string, ctx context.Context, n int64, want error) {
	t.Helper()
	if err := admission.Take(ctx, n); !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// takeAfter is take of a request that waits so long.
func takeAfter(t *testing.T, wait time.Duration, what string, ctx context.Context, n int64, want error) {
	t.Helper()
	began := time.Now()
	take(t, what, ctx, n, want)
	if waited := time.Since(began); waited != wait {
		t.Errorf("%s: waited %v, want %v", what, waited, wait)
	}
}

// withGate runs a test with a gate and a clock of its own.
func withGate(t *testing.T, capacity int64, test func(*testing.T, *admission.Gate)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, admission.NewGate(capacity)) })
}

func TestRequestsWaitForRoom(t *testing.T) {
	withGate(t, 100, func(t *testing.T, g *admission.Gate) {
		first, leave := enter(t, g)
		take(t, "first", first, 60, nil)
		take(t, "first, more", first, 30, nil)
		time.AfterFunc(300*time.Millisecond, leave)
		second, leaveSecond := enter(t, g)
		defer leaveSecond()
		takeAfter(t, 300*time.Millisecond, "second, once the first left", second, 11, nil)
		takeAfter(t, 0, "second, beside nobody", second, 80, nil)
	})
}

// A request waits a second in all, however often it takes.
func TestWaitEndsAfterASecond(t *testing.T) {
	withGate(t, 100, func(t *testing.T, g *admission.Gate) {
		first, leave := enter(t, g)
		take(t, "first", first, 100, nil)
		second, leaveSecond := enter(t, g)
		defer leaveSecond()
		takeAfter(t, time.Second, "second", second, 1, admission.ErrFull)
		takeAfter(t, 0, "second, after its second", second, 1, admission.ErrFull)
		leave()
		take(t, "second, once there is room", second, 1, nil)
	})
}

// Two requests that each hold half of what both need do not block each other.
func TestHalfReadRequestsEnd(t *testing.T) {
	withGate(t, 100, func(t *testing.T, g *admission.Gate) {
		var failed atomic.Int64
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				ctx, leave := g.Enter(t.Context())
				defer leave()
				if err := admission.Take(ctx, 30); err != nil {
					t.Errorf("half: %v", err)
				}
				time.Sleep(time.Millisecond) // the other holds its half, too
				if errors.Is(admission.Take(ctx, 50), admission.ErrFull) {
					failed.Add(1)
				}
			})
		}
		both.Wait()
		if n := failed.Load(); n < 1 {
			t.Errorf("%d requests failed, want one or both", n)
		}
		ctx, leave := enter(t, g)
		defer leave()
		take(t, "afterwards", ctx, 100, nil)
	})
}

func TestHeavyRequestRunsAlone(t *testing.T) {
	withGate(t, 100, func(t *testing.T, g *admission.Gate) {
		heavy, leave := enter(t, g)
		take(t, "heavy", heavy, 70, nil)
		take(t, "heavy, more than the gate has", heavy, 1<<40, nil)
		take(t, "heavy, still more", heavy, 1, nil)
		light, leaveLight := enter(t, g)
		defer leaveLight()
		take(t, "light beside heavy", light, 1, admission.ErrFull)
		leave()
		take(t, "light after heavy", light, 100, nil)
	})
}

func TestTakeOutsideOfRequests(t *testing.T) {
	take(t, "no request", t.Context(), 1<<40, nil)
	g := admission.NewGate(100)
	ctx, leave := enter(t, g)
	take(t, "in the request", ctx, 100, nil)
	leave()
	leave()
	take(t, "after the request", context.WithoutCancel(ctx), 100, nil)
	next, leaveNext := enter(t, g)
	defer leaveNext()
	take(t, "next request", next, 100, nil)
}

func TestWaitEndsWithTheClient(t *testing.T) {
	withGate(t, 1, func(t *testing.T, g *admission.Gate) {
		first, leave := enter(t, g)
		defer leave()
		take(t, "first", first, 1, nil)
		ctx, cancel := context.WithCancel(t.Context())
		second, leaveSecond := g.Enter(ctx)
		defer leaveSecond()
		time.AfterFunc(time.Millisecond, cancel)
		take(t, "second", second, 1, context.Canceled)
	})
}

// A part gives back what it took, and nothing that its request took before or
// beside it.
func TestPartGivesBack(t *testing.T) {
	g := admission.NewGate(100)
	ctx, leave := enter(t, g)
	take(t, "before the part", ctx, 10, nil)
	in, end := admission.Part(ctx)
	take(t, "in the part", in, 60, nil)
	take(t, "beside the part", ctx, 5, nil)
	end()
	end()
	take(t, "in the ended part", in, 100, nil)
	next, leaveNext := enter(t, g)
	defer leaveNext()
	take(t, "another request", next, 60, nil)
	take(t, "another request, more", next, 25, nil)
	in, end = admission.Part(ctx)
	canceled, cancel := context.WithCancel(in)
	cancel()
	take(t, "more than is left", canceled, 1, context.Canceled)
	leave()
	end()
	take(t, "after the part's request", next, 15, nil)

	outside, end := admission.Part(t.Context())
	take(t, "no request", outside, 1<<40, nil)
	end()
}

// Requests that take at random never hold more than the capacity together, and
// give everything back.
func TestCapacityHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const capacity = 1_000
		g := admission.NewGate(capacity)
		var held atomic.Int64
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				for range 20 {
					ctx, leave := g.Enter(t.Context())
					own := int64(0)
					for range rand.IntN(5) {
						n := rand.Int64N(300)
						if admission.Take(ctx, n) != nil {
							break
						}
						n = min(n, capacity-own)
						own += n
						if sum := held.Add(n); sum > capacity {
							t.Errorf("requests hold %d, the capacity is %d", sum, capacity)
						}
						time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
					}
					held.Add(-own)
					leave()
				}
			})
		}
		all.Wait()
		ctx, leave := enter(t, g)
		defer leave()
		takeAfter(t, 0, "after all requests ended", ctx, capacity, nil)
	})
}

// What a request that has begun needs is granted before what others wait for, which
// may be the bytes that it holds.
func TestBegunRequestsGoFirst(t *testing.T) {
	withGate(t, 100, func(t *testing.T, g *admission.Gate) {
		begun, leaveBegun := enter(t, g)
		take(t, "begun", begun, 70, nil)
		large, leaveLarge := g.EnterFor(t.Context(), time.Minute)
		defer leaveLarge()
		var both sync.WaitGroup
		both.Go(func() { take(t, "large", large, 90, nil) })
		synctest.Wait()
		began := time.Now()
		takeAfter(t, 0, "begun, more, beside one that has not", begun, 25, nil)
		small, leaveSmall := g.EnterFor(t.Context(), time.Minute)
		both.Go(func() {
			take(t, "small", small, 1, nil) // behind the large one, which would never find room otherwise
			leaveSmall()
		})
		synctest.Wait()
		time.AfterFunc(30*time.Second, leaveBegun)
		time.AfterFunc(31*time.Second, leaveLarge)
		both.Wait()
		if waited := time.Since(began); waited != 31*time.Second {
			t.Errorf("the small request waited %v, want until the large one left", waited)
		}
	})
}

// The first bytes of requests leave a quarter of the gate to those that have begun.
func TestFirstBytesLeaveRoom(t *testing.T) {
	withGate(t, 100, func(t *testing.T, g *admission.Gate) {
		first, leave := enter(t, g)
		take(t, "first", first, 75, nil)
		second, leaveSecond := g.EnterFor(t.Context(), 0)
		defer leaveSecond()
		take(t, "second", second, 1, admission.ErrFull)
		take(t, "first, more", first, 25, nil)
		take(t, "exempt", admission.Exempt(second), 1, nil)
		leave()
		take(t, "second, alone", second, 100, nil)
	})
}

// A request waits for more bytes for a second, however long it may wait for its first.
func TestBegunRequestWaitsASecond(t *testing.T) {
	withGate(t, 100, func(t *testing.T, g *admission.Gate) {
		first, leave := enter(t, g)
		defer leave()
		take(t, "first", first, 60, nil)
		second, leaveSecond := g.EnterFor(t.Context(), time.Minute)
		defer leaveSecond()
		take(t, "second", second, 10, nil)
		takeAfter(t, time.Second, "second, more", second, 40, admission.ErrFull)
	})
}

// Light requests have a share of their own, so that they do not wait while others hold
// all the rest. What they give back is that share's again.
func TestLightRequestsPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const light = 2 * admission.Light // the share
		g := admission.NewGate(8 * light)
		heavy, leaveHeavy := enter(t, g)
		take(t, "heavy", heavy, 1<<40, nil)
		for range 3 {
			first, leaveFirst := g.EnterFor(t.Context(), 0)
			part, end := admission.Part(first)
			take(t, "light", part, 1_000, nil)
			take(t, "as much as a light request may hold", first, admission.Light-1_000, nil)
			end()
			second, leaveSecond := g.EnterFor(t.Context(), 0)
			take(t, "light beside another", second, admission.Light, nil)
			take(t, "what the part gave back", first, 1_000, nil)
			third, leaveThird := g.EnterFor(t.Context(), 0)
			take(t, "beyond the share", third, 1, admission.ErrFull)
			leaveThird()
			leaveSecond()
			leaveFirst()
		}
		leaveHeavy()
	})
}

// A light request that needs more waits with those that hold nothing, and gives its
// light bytes back once it has moved.
func TestLightRequestGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const light = admission.Light
		g := admission.NewGate(8 * light)
		heavy, leaveHeavy := enter(t, g)
		take(t, "heavy", heavy, 1<<40, nil)
		growing, leave := g.EnterFor(t.Context(), time.Minute)
		take(t, "light", growing, light, nil)
		time.AfterFunc(30*time.Second, leaveHeavy)
		takeAfter(t, 30*time.Second, "more, once there is room", growing, 1, nil)
		other, leaveOther := g.EnterFor(t.Context(), 0)
		take(t, "another light request", other, light, nil)
		leaveOther()
		leave()
		last, leaveLast := enter(t, g)
		defer leaveLast()
		take(t, "all", last, 7*light, nil)
		other, leaveOther = g.EnterFor(t.Context(), 0)
		defer leaveOther()
		take(t, "light beside all", other, light, nil)
	})
}

func BenchmarkRequest(b *testing.B) {
	g := admission.NewGate(1 << 30)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			ctx, leave := g.Enter(b.Context())
			if admission.Take(ctx, 1_000) != nil || admission.Take(ctx, 7_000) != nil {
				b.Error("no room")
			}
			leave()
		}
	})
}

// A request holds what its answer needs once that is encoded, and no more: neither what it
// took before, in parts or not, nor what its parts would give back.
func TestAnswerIsKept(t *testing.T) {
	for _, answer := range []int64{0, 1, 30, 60, 80, 200} {
		withGate(t, 100, func(t *testing.T, g *admission.Gate) {
			ctx, leave := g.EnterFor(t.Context(), 0)
			take(t, "computing", ctx, 40, nil)
			in, end := admission.Part(ctx)
			take(t, "a part", in, 20, nil)
			admission.Keep(ctx, answer)
			end()
			take(t, "after the answer", ctx, 100, nil) // takes nothing
			// Another request that holds one byte may take all that is free.
			held := func(what string, n int64) {
				other, leaveOther := g.EnterFor(t.Context(), 0)
				defer leaveOther()
				if n >= 75 { // the first bytes leave a quarter to those who have begun
					take(t, what, other, 1, admission.ErrFull)
					return
				}
				take(t, what, other, 1, nil)
				takeAfter(t, 0, what+", the rest", other, 99-n, nil)
				if n > 0 {
					take(t, what+", more", other, 1, admission.ErrFull)
				}
			}
			held("kept", min(answer, 100))
			admission.Keep(ctx, 10)
			held("half sent", min(answer, 10))
			admission.Keep(ctx, 50)
			held("an answer does not grow", min(answer, 10))
			leave()
			held("sent", 0)
		})
	}
}

// An answer that is larger than what is free is held all the same, and others wait for it.
func TestAnswerOfFullGate(t *testing.T) {
	withGate(t, 100, func(t *testing.T, g *admission.Gate) {
		other, leaveOther := g.EnterFor(t.Context(), 0)
		take(t, "other", other, 70, nil)
		ctx, leave := g.EnterFor(t.Context(), 0)
		admission.Keep(ctx, 60)
		take(t, "other, more", other, 1, admission.ErrFull)
		leave()
		take(t, "other, once the answer is sent", other, 30, nil)
		leaveOther()
		last, leaveLast := g.EnterFor(t.Context(), 0)
		defer leaveLast()
		take(t, "all", last, 100, nil)
	})
}

// A light answer stays in the share of light requests.
func TestLightAnswerStaysLight(t *testing.T) {
	g := admission.NewGate(1 << 30)
	all, leaveAll := g.Enter(t.Context())
	take(t, "all but the share", all, 1<<30, nil)
	ctx, leave := g.EnterFor(t.Context(), 0)
	defer leave()
	admission.Keep(ctx, admission.Light)
	leaveAll()
	next, leaveNext := g.EnterFor(t.Context(), 0)
	defer leaveNext()
	take(t, "all but the share", next, 1<<30, nil)
}
