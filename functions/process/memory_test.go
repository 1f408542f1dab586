package process_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// ReadBody takes as many bytes from the gate as a push and its decoded message hold.
func TestDecodedBytes(t *testing.T) {
	const size = 1 << 20
	filters := strings.Repeat(`["f","v"],`, size/10) + `["f","v"]`
	event := `{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","filters":["a:b"]}`
	for name, message := range map[string]string{
		"short filters": `{"app":"shop","receivedAt":1,"resolved":true,"objects":{"i":{"1":[` + filters + `]}}}` + "\n" + `{"events":[` + event + `]}`,
		"small objects": `{"app":"shop","receivedAt":1,"resolved":true,"objects":{"i":{` + objects(size/20) + `}}}` + "\n" + `{"events":[` + event + `]}`,
		"short events":  `{"app":"shop","receivedAt":1,"resolved":true}` + "\n" + `{"events":[` + event + strings.Repeat(","+event, 999) + `]}`,
	} {
		t.Run(name, func(t *testing.T) {
			body := push(message)
			before := live()
			delivery, err := bus.DecodePush([]byte(body))
			must.Succeed(t, err)
			m, err := bus.DecodeMessage(delivery.Message.Data)
			must.Succeed(t, err)
			events, err := m.Events()
			must.Succeed(t, err)
			held := 1 + float64(live()-before)/float64(len(body))
			if held > httpapi.BodyWeight {
				t.Errorf("%.1f bytes for each byte of the push, want at most %d", held, httpapi.BodyWeight)
			}
			runtime.KeepAlive(delivery)
			runtime.KeepAlive(m)
			runtime.KeepAlive(events)
		})
	}
}

// objects are n objects with one short filter each.
func objects(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"%d":[["f","v"]]`, i)
	}
	return b.String()
}

// live returns the bytes of the heap that are in use.
func live() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
