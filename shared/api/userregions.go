package api

// UserRegion is the answer of GET and PUT /1/users/{userToken}/region.
type UserRegion struct {
	UserToken string `json:"userToken"`
	// Region is where the user lives.
	Region string `json:"region"`
	// Since is from when on; absent for a user whom nobody knows, and where all users live in the region of the app.
	Since *Time `json:"since,omitempty"`
	// MovingTo is the region to which the user moves now, in the background.
	MovingTo string `json:"movingTo,omitempty"`
}

// UserRegionRequest is the body of PUT /1/users/{userToken}/region.
type UserRegionRequest struct {
	Region string `json:"region"`
}
