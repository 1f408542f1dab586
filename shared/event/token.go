package event

// tokenChars marks the bytes that a user token may contain.
var tokenChars = func() (set [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_=/+-") {
		set[c] = true
	}
	return set
}()

// ValidUserToken reports whether s is a well-formed user token: 1 to 129
// characters of [a-zA-Z0-9_=/+-]. Such a token needs no escaping in a row key.
func ValidUserToken(s string) bool {
	if s == "" || len(s) > maxToken {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !tokenChars[s[i]] {
			return false
		}
	}
	return true
}

// InvalidToken reports whether a reason says that a user token has a form that no token
// has.
func InvalidToken(reason string) bool { return reason == msgTokenForm || reason == msgAuthToken }
