package api

// Consents is the answer of GET, PUT and DELETE /1/consents/{userToken}.
type Consents struct {
	UserToken string `json:"userToken"`
	// Purposes are those of the app, in its order.
	Purposes []UserPurpose `json:"purposes"`
	// Surfaces say how much each surface uses of what is kept of the user: all, part or none.
	Surfaces map[string]string `json:"surfaces"`
	// Words say what a withdrawal reaches later; empty unless the request changed something and a purpose is withdrawn.
	Words string `json:"words,omitempty"`
}

// UserPurpose is what holds for a user and a purpose.
type UserPurpose struct {
	Name string `json:"name"`
	// Granted says whether events may be used for the purpose.
	Granted bool `json:"granted"`
	// Asked says whether the user has said so. Otherwise that is the default of the purpose.
	Asked bool `json:"asked"`
	// Since is when the purpose last changed between granted and not; absent for never. Earlier events do not count for
	// it.
	Since *Time `json:"since,omitempty"`
}
