// Package terraform gives Go what Terraform reads, so that what is deployed, what
// the code expects and what the local stack makes are told in one place. It is
// here because Go embeds only what lies beside or below it. The data are the files
// of this folder, compiled in.
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
