package auth

import "net/http"

// Serve returns the handler of a route. It asks who, such as a method of the Authenticator, with
// the permissions of the route, and gives what that returns to handle.
func Serve[T any](who func(*http.Request,
	...string) (T, error), handle func(http.ResponseWriter, *http.Request, T) error,
	anyOf ...string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		of, err := who(r, anyOf...)
		if err != nil {
			return err
		}
		return handle(w, r, of)
	}
}

// ServeBoth is Serve for what returns two things, such as the app and the Grant.
func ServeBoth[A, B any](who func(*http.Request,
	...string) (A, B, error), handle func(http.ResponseWriter, *http.Request, A, B) error,
	anyOf ...string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		one, other, err := who(r, anyOf...)
		if err != nil {
			return err
		}
		return handle(w, r, one, other)
	}
}
