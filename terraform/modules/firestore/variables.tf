variable "project_id" {
  description = "The project."
  type        = string
  nullable    = false
}

variable "database" {
  description = "Database of apps, strategies and jobs, or of keys. It has a name, so that the project's (default) database stays free for other uses."
  type        = string
  default     = "affinity"
  nullable    = false

  validation {
    condition     = var.database == "(default)" || can(regex("^[a-z][a-z0-9-]{2,61}[a-z0-9]$", var.database))
    error_message = "database \"${var.database}\" must be (default), or 4 to 63 lower-case letters, digits and hyphens, begin with a letter and not end with a hyphen."
  }
}

variable "location" {
  description = "Location of the database: a region, or the multi-regions eur3 or nam5. It cannot change."
  type        = string
  nullable    = false
}

variable "point_in_time_recovery" {
  description = "Whether Firestore keeps every version of its documents for seven days. Google bills the versions as storage."
  type        = bool
  default     = false
  nullable    = false
}

variable "deletion_protection" {
  description = "Whether the database refuses to be deleted."
  type        = bool
  default     = true
  nullable    = false
}

variable "backup_days" {
  description = "Number of days that Firestore keeps the backup that it makes every day. 0: no backups. Firestore itself allows up to 98 days, Bigtable from 3 to 90; this engine has one number for both."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = var.backup_days == 0 || var.backup_days >= 3 && var.backup_days <= 90 && floor(var.backup_days) == var.backup_days
    error_message = "backup_days ${var.backup_days} must be 0, for no backups, or a whole number from 3 to 90."
  }
}

variable "unindexed" {
  description = "Fields by collection that no query looks at. Firestore does not index them."
  type        = map(list(string))
  nullable    = false
  default = {
    apps          = ["armRankings", "dates", "experiment", "numericBands", "privateFacets", "strategy", "trackNames"]
    strategies    = ["strategy"]
    indexes       = ["attributesForFaceting", "numericBands"]
    feeds         = ["date", "definition", "index"]
    experiments   = ["definition"]
    savedSegments = ["where"]
    shards        = ["error", "faults", "from", "next", "to"]
  }
}

variable "expiring" {
  description = "Field by collection with the time after which Firestore deletes a document. It is not indexed. A document without the field stays."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for c, f in var.expiring : !contains(lookup(var.unindexed, c, []), f)])
    error_message = "A field must be either in unindexed or in expiring, not in both: ${join(", ", [for c, f in var.expiring : "${c}/${f}" if contains(lookup(var.unindexed, c, []), f)])}."
  }
}

variable "queued" {
  description = "Collections of jobs. An index over those of all apps counts the jobs that are before another one in its queue."
  type        = set(string)
  default     = []
  nullable    = false
}

variable "viewers" {
  description = "Members that may read the database, by any label."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "users" {
  description = "Members that may read and write the database, by any label."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = length(setintersection(keys(var.users), keys(var.viewers))) == 0
    error_message = "A member must be either in viewers or in users, not in both: ${join(", ", setintersection(keys(var.users), keys(var.viewers)))}."
  }
}
