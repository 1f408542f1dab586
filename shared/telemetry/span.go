package telemetry

import (
	"context"
	"net/http"
	"path"
	"strconv"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// scope names the code that records spans and metrics.
const scope = "github.com/affinityengine/affinity"

// recording is true once the process records spans. Until then a request does not pay
// for them.
var recording atomic.Bool

// RecordSpans makes the process record its spans with p, which becomes the global
// provider, so that Google's clients use it too. Clients that are open already do not.
func RecordSpans(p trace.TracerProvider) {
	otel.SetTracerProvider(p)
	recording.Store(true)
}

// Recording reports whether the process records spans.
func Recording() bool { return recording.Load() }

func tracer() trace.Tracer { return otel.Tracer(scope) }

// Request is the span of a request. It names the route, not the path, which may hold a
// user token: of what a client sends, only the method of HTTP gets into a span.
type Request struct {
	http.ResponseWriter
	span   trace.Span
	method attribute.KeyValue
	status int
}

// StartRequest begins the span of a request. It is nil if the process records no spans. The
// returned context holds it; the handler must write its answer to the returned writer. If
// the header says which trace created the request as a task, the span has a link to it.
func StartRequest(ctx context.Context, w http.ResponseWriter,
	r *http.Request) (context.Context, http.ResponseWriter, *Request) {
	if !Recording() {
		return ctx, w, nil
	}
	method := methodOf(r)
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(method)}
	if cause := r.Header.Get(CauseHeader); cause != "" {
		options = append(options, link(propagation.MapCarrier{"traceparent": cause}))
	}
	ctx, span := tracer().Start(ctx, "HTTP", options...) // End knows the route
	request := &Request{w, span, method, http.StatusOK}
	return ctx, request, request
}

// End ends the span of a request that a route has answered: a pattern of http.ServeMux
// without its method, or "" if no route took the request.
func (r *Request) End(route string) {
	if r.span.IsRecording() {
		attributes := []attribute.KeyValue{semconv.HTTPResponseStatusCode(r.status)}
		if route != "" {
			r.span.SetName(r.method.Value.AsString() + " " + route)
			attributes = append(attributes, semconv.HTTPRoute(route))
		}
		if r.status >= http.StatusInternalServerError {
			attributes = append(attributes, semconv.ErrorTypeKey.String(strconv.Itoa(r.status)))
			r.span.SetStatus(codes.Error, "") // the cause may name a user
		}
		r.span.SetAttributes(attributes...)
	}
	r.span.End()
}

// WriteHeader notes the status of the answer.
func (r *Request) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the writer of the server, for http.ResponseController.
func (r *Request) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// methodOf returns the method of a request. A client can send any text as one.
func methodOf(r *http.Request) attribute.KeyValue {
	switch r.Method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodHead,
		http.MethodPatch:
		return semconv.HTTPRequestMethodKey.String(r.Method)
	}
	return semconv.HTTPRequestMethodOther
}

// CauseHeader is the header of a task's request that names the span which created the
// task, in the form of W3C's traceparent. It is not traceparent itself, because a task
// runs later, and often: it has traces of its own, with a link to that span.
const CauseHeader = "Affinity-Cause"

// Cause returns the value of CauseHeader for a task that the span of ctx creates, or "".
func Cause(ctx context.Context) string {
	if !Recording() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	w3c.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// pubsubKey is the attribute of a message in which Pub/Sub's client names the span that
// published the message.
const pubsubKey = "googclient_traceparent"

// StartDelivery begins the span of a message that Pub/Sub delivers, with a link to the span
// that published it: a message may be delivered more than once. The caller ends it.
func StartDelivery(ctx context.Context, subscription string, attempt int,
	attributes map[string]string) (context.Context, trace.Span) {
	if !Recording() {
		return ctx, trace.SpanFromContext(ctx) // which records nothing
	}
	name := path.Base(subscription)
	return tracer().Start(ctx, "process "+name, trace.WithSpanKind(trace.SpanKindConsumer),
		link(propagation.MapCarrier{"traceparent": attributes[pubsubKey]}),
		trace.WithAttributes(semconv.MessagingSystemGCPPubSub, semconv.MessagingOperationTypeProcess,
			semconv.MessagingDestinationSubscriptionName(name), semconv.MessagingGCPPubSubMessageDeliveryAttempt(attempt)))
}

// link returns a link to the span that a carrier names, or none.
func link(carrier propagation.MapCarrier) trace.SpanStartOption {
	cause := trace.SpanContextFromContext(w3c.Extract(context.Background(), carrier))
	if !cause.IsValid() {
		return trace.WithLinks()
	}
	return trace.WithLinks(trace.Link{SpanContext: cause})
}
