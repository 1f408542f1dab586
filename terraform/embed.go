// Package terraform embeds the files that Terraform reads, so that the deployment,
// the code and the local stack share one description. The package is in this
// directory because Go embeds only files in or below a package's directory.
package terraform

import _ "embed" // for the files

// Bigtable is the text of bigtable.json: the tables, their families, the garbage
// collection of each family, and what each holds. Package shared/store decodes it.
//
//go:embed bigtable.json
var Bigtable string

// Sizes is the text of sizes.tf: the size of an instance of each function, in the local sizes.
//
//go:embed sizes.tf
var Sizes string

// functions is the text of functions.json. ReadDeployment decodes it.
//
//go:embed functions.json
var functions string
