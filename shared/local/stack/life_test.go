package stack_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/local/stack"
)

// A delivery whose request to Bigtable takes longer than a delivery lives gives up, and the
// next one applies the message.
func TestDeliveryThatLivesTooLong(t *testing.T) {
	t.Parallel()
	const life = 500 * time.Millisecond
	var first sync.Once
	begun, letGo := make(chan struct{}), make(chan struct{})
	hold := grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		answer, err := handle(ctx, req)
		if _, ticket := req.(*bigtablepb.ReadModifyWriteRowRequest); ticket {
			first.Do(func() { // the ticket is drawn, and its answer does not arrive
				close(begun)
				<-letGo
			})
		}
		return answer, err
	})
	s := start(t, stack.Options{Life: life, Bigtable: []grpc.ServerOption{hold}})
	release := sync.OnceFunc(func() { close(letGo) })
	t.Cleanup(release)
	for _, post := range [][2]string{
		{"/1/strategies/personalization", seenStrategy},
		{"/1/events", `{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","filters":["color:Red"],"eventID":"1"}]}`},
	} {
		if code, answer := ask(t, s, "POST", post[0], post[1]); code != 200 {
			t.Fatal(post[0], code, answer)
		}
	}
	<-begun
	<-time.After(2 * life)
	release()
	idle(t, s)
	row, err := s.Backends.Store.Users.ReadUser(t.Context(), "demo", "u")
	if err != nil || row.Ticket < 2 {
		t.Fatalf("%+v, %v; want a second delivery, which draws a ticket of its own", row, err)
	}
	if code, answer := ask(t, s, "GET", "/1/explain/u", ""); code != 200 || !strings.Contains(answer, `"accepted":1`) {
		t.Errorf("%d %s; want the event once", code, answer)
	}
}
