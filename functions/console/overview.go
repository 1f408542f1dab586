package console

func init() {
	pages = append(pages, page{pattern: "GET /{$}", section: "overview", template: "overview", load: loadOverview})
}

// overview is what the first page shows.
type overview struct{}

func loadOverview(v *visit) (any, error) {
	v.title = "Overview"
	return overview{}, nil
}
