package api

// LinkCounts count the links that events would make, which name a token and the user who has signed in under it.
type LinkCounts struct {
	// Evidence is the number of events that name a userToken and another authenticatedUserToken.
	Evidence int64 `json:"evidence"`
	// Tokens is the number of tokens that would be linked, Users that of the users whom they would be linked to.
	Tokens int64 `json:"tokens"`
	Users  int64 `json:"users"`
	// PerUser says how many users have how many linked tokens, the fewest tokens first.
	PerUser []TokensPerUser `json:"perUser"`
	// Largest are the users with the most linked tokens, at most MaxLargestUsers.
	Largest []LargestUser `json:"largest"`
	// Closed is the number of links that end because another user signs in under the token, Limited that of
	// those that end because the user, or the token, has too many.
	Closed  int64 `json:"closed"`
	Limited int64 `json:"limited"`
	// Refused are the reasons for which evidence makes no link, the most frequent first.
	Refused []RefusedEvidence `json:"refused"`
}

// TokensPerUser says how many users have a number of linked tokens.
type TokensPerUser struct {
	Tokens int64 `json:"tokens"`
	Users  int64 `json:"users"`
}

// MaxLargestUsers bounds LinkCounts.Largest.
const MaxLargestUsers = 10

// LargestUser is a user with many linked tokens.
type LargestUser struct {
	AuthenticatedUserToken string   `json:"authenticatedUserToken"`
	UserTokens             []string `json:"userTokens"`
}

// RefusedEvidence counts the events that make no link for a reason, and names the tokens of the first of them.
type RefusedEvidence struct {
	Reason                 string `json:"reason"`
	Count                  int64  `json:"count"`
	UserToken              string `json:"userToken"`
	AuthenticatedUserToken string `json:"authenticatedUserToken"`
}
