// Package terraform gives Go the files that Terraform reads, so that the deployment,
// the code and the local stack share one description. It is in this folder because
// Go embeds only files beside or below a package. Its data are compiled in.
package terraform

import _ "embed" // for the files

// Bigtable is bigtable.json: the tables, their families, and how each family is
// collected. Package shared/store decodes it.
//
//go:embed bigtable.json
var Bigtable string

// functions is functions.json. ReadDeployment decodes it.
//
//go:embed functions.json
var functions string
