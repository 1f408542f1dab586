variable "project_id" {
  description = "The project."
  type        = string
  nullable    = false
}

variable "instance_name" {
  description = "The Bigtable instance."
  type        = string
  default     = "affinity"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,31}[a-z0-9]$", var.instance_name))
    error_message = "instance_name \"${var.instance_name}\" must be 6 to 33 lower-case letters, digits and hyphens, begin with a letter and not end with a hyphen."
  }
}

variable "clusters" {
  description = "Clusters by id. Each is in its own zone, which may be in another region. Bigtable keeps between min_nodes and max_nodes, so that CPU stays near cpu_target percent and a node stores no more than storage_target_gib GiB. serves: whether the cluster answers reads of stored profiles."
  type = map(object({
    zone               = string
    serves             = optional(bool, true)
    min_nodes          = optional(number, 1)
    max_nodes          = optional(number, 1)
    cpu_target         = optional(number, 60)
    storage_target_gib = optional(number, 2560)
  }))
  nullable = false

  validation {
    condition     = length(var.clusters) >= 1 && length(var.clusters) <= 8
    error_message = "An instance must have 1 to 8 clusters, not ${length(var.clusters)}."
  }

  validation {
    condition     = alltrue([for id in keys(var.clusters) : can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", id))])
    error_message = "A cluster's id must be 6 to 30 lower-case letters, digits and hyphens: ${join(", ", [for id in keys(var.clusters) : id if !can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", id))])}."
  }

  validation {
    condition     = anytrue([for c in values(var.clusters) : c.serves])
    error_message = "No cluster serves stored profiles: at least one needs serves = true."
  }

  validation {
    condition     = length(distinct([for c in values(var.clusters) : c.zone])) == length(var.clusters)
    error_message = "Each cluster needs a zone of its own: ${join(", ", [for id, c in var.clusters : "${id} in ${c.zone}"])}."
  }

  validation {
    condition     = alltrue([for c in values(var.clusters) : c.min_nodes >= 1 && c.max_nodes >= c.min_nodes && c.max_nodes <= 10 * c.min_nodes])
    error_message = "Nodes must be at least 1, and max_nodes from min_nodes to ten times as many: ${join(", ", [for id, c in var.clusters : "${id} has ${c.min_nodes} to ${c.max_nodes}" if c.min_nodes < 1 || c.max_nodes < c.min_nodes || c.max_nodes > 10 * c.min_nodes])}."
  }

  validation {
    condition     = alltrue([for c in values(var.clusters) : c.cpu_target >= 10 && c.cpu_target <= 80])
    error_message = "cpu_target must be 10 to 80 percent: ${join(", ", [for id, c in var.clusters : "${id} has ${c.cpu_target}" if c.cpu_target < 10 || c.cpu_target > 80])}."
  }

  validation {
    condition     = alltrue([for c in values(var.clusters) : c.storage_target_gib >= 2560 && c.storage_target_gib <= 5120])
    error_message = "storage_target_gib must be 2560 to 5120 GiB: ${join(", ", [for id, c in var.clusters : "${id} has ${c.storage_target_gib}" if c.storage_target_gib < 2560 || c.storage_target_gib > 5120])}."
  }
}

variable "primary_cluster" {
  description = "Cluster that everything is written to and computed from. Changing it is a failover: see functions/docs/operate/failover.md."
  type        = string
  nullable    = false

  validation {
    condition     = contains(keys(var.clusters), var.primary_cluster)
    error_message = "primary_cluster \"${var.primary_cluster}\" is not one of the clusters: ${join(", ", keys(var.clusters))}."
  }
}

variable "tables" {
  description = "Tables of bigtable.json, with their families and what Bigtable may drop in each: events by \"age\", or every version but the \"newest\". days: the newest is dropped too at that age, in a family whose cells have the time of their writing."
  type = list(object({
    name     = string
    families = list(object({ name = string, collect = string, days = optional(number, 0) }))
  }))
  nullable = false

  validation {
    condition     = alltrue(flatten([for t in var.tables : [for f in t.families : contains(["age", "newest"], f.collect)]]))
    error_message = "collect of a family must be age or newest: ${join(", ", flatten([for t in var.tables : [for f in t.families : "${t.name}/${f.name} by ${f.collect}" if !contains(["age", "newest"], f.collect)]]))}."
  }

  validation {
    condition     = alltrue(flatten([for t in var.tables : [for f in t.families : f.days >= 0 && floor(f.days) == f.days && (f.days == 0 || f.collect == "newest")]]))
    error_message = "days of a family must be a whole number, and only a family that is collected by newest may have them."
  }
}

variable "table_sets" {
  description = "Names of further sets of the same tables, for apps that have tables of their own."
  type        = list(string)
  default     = []
  nullable    = false

  # Bigtable's limit for the name of a table is 50.
  validation {
    condition     = alltrue([for set in var.table_sets : can(regex("^[a-z0-9-]{1,36}$", set))])
    error_message = "The name of a set of tables must be 1 to 36 lower-case letters, digits and hyphens: ${join(", ", var.table_sets)}."
  }
}

variable "longest_retention_days" {
  description = "Longest retention of all apps, in days. Bigtable may drop older events. 0: an app keeps its events forever, so Bigtable drops none."
  type        = number
  nullable    = false

  validation {
    condition     = var.longest_retention_days >= 0 && floor(var.longest_retention_days) == var.longest_retention_days && var.longest_retention_days <= 36500
    error_message = "longest_retention_days ${var.longest_retention_days} must be a whole number from 0 to 36500."
  }
}

variable "deletion_protection" {
  description = "Whether the instance and its tables refuse to be deleted."
  type        = bool
  default     = true
  nullable    = false
}

variable "backup_days" {
  description = "Number of days that Bigtable keeps the backup that it makes of each table every day. 0: no backups."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = var.backup_days == 0 || var.backup_days >= 3 && var.backup_days <= 90 && floor(var.backup_days) == var.backup_days
    error_message = "backup_days ${var.backup_days} must be 0, for no backups, or a whole number from 3 to 90."
  }
}

variable "data_boost" {
  description = "Whether there is an app profile of Data Boost, analysis. The project of the instance pays for it."
  type        = bool
  default     = false
  nullable    = false
}

variable "clients" {
  description = "Members that use the instance, by any label. They may open connections, but not read or write."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "grants" {
  description = "Grants on tables, by any label: roles/bigtable.reader or roles/bigtable.user."
  type        = map(object({ table = string, role = string, member = string }))
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for g in values(var.grants) : contains(["roles/bigtable.reader", "roles/bigtable.user"], g.role)])
    error_message = "The role of a grant must be roles/bigtable.reader or roles/bigtable.user: ${join(", ", [for label, g in var.grants : "${label} has ${g.role}" if !contains(["roles/bigtable.reader", "roles/bigtable.user"], g.role)])}."
  }

  validation {
    condition     = alltrue([for g in values(var.grants) : contains([for t in var.tables : t.name], g.table)])
    error_message = "Grants on tables that do not exist: ${join(", ", [for label, g in var.grants : "${g.table} of ${label}" if !contains([for t in var.tables : t.name], g.table)])}."
  }
}

variable "role_ending" {
  description = "Last part of the id of the role that connects, which Google keeps reserved after a destruction. Empty: none."
  type        = string
  default     = ""
  nullable    = false
}
