package client

// The types below are what a Client can do with one kind of things. Each is a view of its Client.
type (
	// Events sends, imports and lists events.
	Events struct{ *conn }
	// Profiles are those of users, with their opt-outs and deletions.
	Profiles struct{ *conn }
	// Strategies are the versions of the app's strategy.
	Strategies struct{ *conn }
	// Catalog are the objects of indexes, and the settings of these.
	Catalog struct{ *conn }
	// Feeds are the app's feeds.
	Feeds struct{ *conn }
	// Experiments divide users among strategies.
	Experiments struct{ *conn }
	// Segments are saved segments and questions that name none.
	Segments struct{ *conn }
	// Jobs are jobs that the app's people start.
	Jobs struct{ *conn }
	// Schema is the schema of the app's log, and its migration.
	Schema struct{ *conn }
)

// conn is a Client to its views.
type conn = Client

// Events returns what sends, imports and lists events.
func (c *Client) Events() Events { return Events{c} }

// Profiles returns the profiles of users.
func (c *Client) Profiles() Profiles { return Profiles{c} }

// Strategies returns the versions of the app's strategy.
func (c *Client) Strategies() Strategies { return Strategies{c} }

// Catalog returns the objects of indexes.
func (c *Client) Catalog() Catalog { return Catalog{c} }

// Feeds returns the app's feeds.
func (c *Client) Feeds() Feeds { return Feeds{c} }

// Experiments returns the app's experiments.
func (c *Client) Experiments() Experiments { return Experiments{c} }

// Segments returns the app's segments.
func (c *Client) Segments() Segments { return Segments{c} }

// Jobs returns the app's jobs.
func (c *Client) Jobs() Jobs { return Jobs{c} }

// Schema returns the schema of the app's log.
func (c *Client) Schema() Schema { return Schema{c} }
