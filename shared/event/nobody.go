package event

import "strings"

// nobody are tokens that programs send where they know no user, in lower case: the texts of
// missing values of programming languages, and names of fields and of nobody in particular.
var nobody = func() map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq("undefined null nil none nan true false unknown anonymous guest not-set not_set " +
		"n/a not_authenticated distinct_id distinctid user_id userid id email") {
		set[name] = true
	}
	return set
}()

// longestNobody is the length of the longest of these tokens.
const longestNobody = len("not_authenticated")

// NamesNobody reports whether a user token probably stands for no user: the text of a
// missing value in upper or lower case, such as undefined, null or NaN, or a token without
// a letter or a digit other than 0, such as 0 or the UUID of zeros. Events of such a token
// are accepted: they make one user of all visitors who are sent so.
func NamesNobody(token string) bool {
	digits := strings.IndexFunc(token, func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '1' && r <= '9'
	})
	return digits < 0 || len(token) <= longestNobody && nobody[strings.ToLower(token)]
}
