package emulator

import (
	"context"
	"crypto/subtle"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Guard returns the option of a server of this package that answers only calls with the
// token, or from a client of InProcess. Every other call gets UNAUTHENTICATED. Pass it before
// other interceptors.
func Guard(token string) grpc.ServerOption { return guard{token: token} }

type guard struct {
	grpc.EmptyServerOption
	token string
}

func (g guard) known() []grpc.ServerOption {
	want := []byte(bearer(g.token))
	check := func(ctx context.Context) error {
		sent := metadata.ValueFromIncomingContext(ctx, "authorization")
		if len(sent) != 1 || subtle.ConstantTimeCompare([]byte(sent[0]), want) != 1 {
			return status.Error(codes.Unauthenticated,
				"the call lacks the token of this emulator, as `authorization: Bearer TOKEN`")
		}
		return nil
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo,
			handle grpc.UnaryHandler) (any, error) {
			if err := check(ctx); err != nil {
				return nil, err
			}
			return handle(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo,
			handle grpc.StreamHandler) error {
			if err := check(stream.Context()); err != nil {
				return err
			}
			return handle(srv, stream)
		}),
	}
}

// WithToken makes a client send the token of Guard with each call. The connection
// needs no TLS: it stays on this machine.
func WithToken(token string) grpc.DialOption {
	return grpc.WithPerRPCCredentials(tokenCredentials{"authorization": bearer(token)})
}

// tokenCredentials is the metadata of each call.
type tokenCredentials map[string]string

var _ credentials.PerRPCCredentials = tokenCredentials{}

// GetRequestMetadata returns the token as gRPC sends it.
func (t tokenCredentials) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return t, nil
}

// RequireTransportSecurity permits a connection without TLS.
func (tokenCredentials) RequireTransportSecurity() bool { return false }

func bearer(token string) string { return "Bearer " + token }
