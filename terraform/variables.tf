variable "project_id" {
  description = "The Google Cloud project that everything is made in. One engine to a project."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project_id))
    error_message = "project_id \"${var.project_id}\" must be 6 to 30 lower-case letters, digits and hyphens: the id, not the name or the number."
  }
}

variable "environment" {
  description = "What this deployment is, such as dev or prod: a label on all that it costs."
  type        = string
  default     = "dev"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,62}$", var.environment))
    error_message = "environment \"${var.environment}\" must be lower-case letters, digits and hyphens and begin with a letter."
  }
}

variable "region" {
  description = "Where the functions run, the configuration lies, and a cluster without a zone. It cannot be changed later: a Firestore database stays where it is, and so does a Bigtable cluster. Another region would replace both, with all that they hold."
  type        = string
  default     = "europe-west1"
  nullable    = false

  validation {
    condition     = contains(local.regions, var.region)
    error_message = "\"${var.region}\" is no region of Google Cloud that is known here. Known are ${join(", ", local.regions)}; a newer one is added in regions.tf."
  }
}

variable "clusters" {
  description = <<-EOT
    The Bigtable clusters by id. A cluster without a zone lies in zone b of the region; its nodes follow the load between
    min_nodes and max_nodes. Stored profiles are served by all clusters, everything is written to primary_cluster.
    A new zone is a new cluster with a new id, and the old one is taken away after a failover: changing the zone of an id
    replaces the whole instance, with all that it holds.
  EOT
  type = map(object({
    zone       = optional(string)
    min_nodes  = optional(number, 1)
    max_nodes  = optional(number, 1)
    cpu_target = optional(number, 60)
  }))
  default  = { cluster-1 = {} }
  nullable = false

  validation {
    condition     = alltrue([for c in values(var.clusters) : c.zone == null || can(regex("^(${join("|", local.regions)})-[a-z]$", coalesce(c.zone, "-")))])
    error_message = "These clusters are in no zone of a region that is known here, such as europe-west1-b: ${join(", ", [for id, c in var.clusters : "${id} (${c.zone})" if c.zone != null && !can(regex("^(${join("|", local.regions)})-[a-z]$", coalesce(c.zone, "-")))])}."
  }
}

variable "primary_cluster" {
  description = "The cluster that everything is written to. Null only where there is one. Changing it is a failover, which has its steps: see README.md."
  type        = string
  default     = null

  # The first by name would be another one as soon as a cluster is added before it.
  validation {
    condition     = var.primary_cluster != null || length(var.clusters) <= 1
    error_message = "Of several clusters primary_cluster must say which is written to, and it says nothing: one of ${join(", ", keys(var.clusters))}. Where a cluster is being added, it is the one that was there."
  }

  validation {
    condition     = var.primary_cluster == null || contains(keys(var.clusters), coalesce(var.primary_cluster, "-"))
    error_message = "primary_cluster \"${coalesce(var.primary_cluster, "null")}\" is none of the clusters: ${join(", ", keys(var.clusters))}."
  }
}

variable "bigtable_instance" {
  description = "Name of the Bigtable instance. Change it only to restore a backup, as README.md says: another name is another instance, without the data."
  type        = string
  default     = "affinity"
  nullable    = false
}

variable "firestore_database" {
  description = "Name of the Firestore database that holds the configuration. Change it only to restore a backup, as README.md says: another name is another database, without the data."
  type        = string
  default     = "affinity"
  nullable    = false
}

variable "longest_retention_days" {
  description = "The longest retention of all apps in days. Bigtable drops events that are older by more than a day, so raise it before an app's. 0: some app keeps its events for ever."
  type        = number
  default     = 90
  nullable    = false

  validation {
    condition     = var.longest_retention_days >= 0 && floor(var.longest_retention_days) == var.longest_retention_days && var.longest_retention_days <= 36500
    error_message = "longest_retention_days ${var.longest_retention_days} must be a whole number from 0 to 36500."
  }
}

variable "replay_days" {
  description = "For how many days applied events can be applied once more, which a lost cluster needs. 0: not at all."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = var.replay_days >= 0 && var.replay_days <= 31
    error_message = "replay_days ${var.replay_days} must be from 0 to 31."
  }
}

variable "deletion_protection" {
  description = "Whether what holds data refuses to be deleted. Take it away, and apply, before a teardown."
  type        = bool
  default     = true
  nullable    = false
}

variable "backup_days" {
  description = "Number of days that daily backups of Firestore and of each Bigtable table are kept. 0: no backups. README.md says how to restore."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = var.backup_days == 0 || var.backup_days >= 3 && var.backup_days <= 90 && floor(var.backup_days) == var.backup_days
    error_message = "backup_days ${var.backup_days} must be 0, for no backups, or a whole number from 3 to 90."
  }
}

variable "point_in_time_recovery" {
  description = "Whether the configuration in Firestore can be read as of any minute of the last seven days."
  type        = bool
  default     = false
  nullable    = false
}

variable "source_dir" {
  description = "Where `go run ./scripts/package` has put the functions' zips. Null plans without them, to see what would be made; such a plan cannot be applied."
  type        = string
  default     = "../dist"
}

variable "functions" {
  description = "Sizes of single functions where they are to differ from sizes.tf, by name, as { profiles = { min_instances = 2 } }. A dedicated customer's own have them too, but for their instances."
  type = map(object({
    min_instances   = optional(number)
    max_instances   = optional(number)
    concurrency     = optional(number)
    cpu             = optional(string)
    memory          = optional(string)
    timeout_seconds = optional(number)
  }))
  default  = {}
  nullable = false

  validation {
    condition     = length(setsubtract(keys(var.functions), keys(local.functions))) == 0
    error_message = "There are no functions ${join(", ", setsubtract(keys(var.functions), keys(local.functions)))}, only ${join(", ", keys(local.functions))}."
  }

  validation {
    condition     = alltrue([for f in values(var.functions) : coalesce(f.timeout_seconds, 60) <= 600])
    error_message = "timeout_seconds must be at most 600, since no caller waits longer: ${join(", ", [for name, f in var.functions : name if coalesce(f.timeout_seconds, 60) > 600])}."
  }

  # A task begins no user after four minutes, but an audit compares for eight.
  validation {
    condition     = coalesce(try(var.functions["worker"].timeout_seconds, 600), 600) >= 600
    error_message = "timeout_seconds of worker must be 600, not ${coalesce(try(var.functions["worker"].timeout_seconds, 600), 600)}: an audit takes eight minutes, and one that is cut off begins anew."
  }
}

variable "run_quota" {
  description = "The project's Cloud Run quotas in the region: vCPUs, and GiB of memory (quotas CpuAllocPerProjectRegion and MemAllocPerProjectRegion). All functions at their maximum must fit. The default is what a new project has."
  type = object({
    cpu        = optional(number, 20)
    memory_gib = optional(number, 40)
  })
  default  = {}
  nullable = false

  validation {
    condition     = local.run_total.cpu <= var.run_quota.cpu && local.run_total.memory_gib <= var.run_quota.memory_gib
    error_message = "At their maximum the functions need ${local.run_total.cpu} vCPU and ${local.run_total.memory_gib} GiB, but Cloud Run's quota of this project in ${var.region} is ${var.run_quota.cpu} vCPU and ${var.run_quota.memory_gib} GiB (run_quota). Lower max_instances in functions or customers, or ask for more quota and then set run_quota: see \"Quotas to ask for before production\" in terraform/README.md. vCPU of each function: ${join(", ", [for key, m in local.run_maximum : "${key} ${m.cpu}"])}."
  }
}

variable "nightly" {
  description = "When the nightly round begins for every app without a schedule of its own, and over how long it is spread."
  type = object({
    schedule  = optional(string, "0 3 * * *")
    time_zone = optional(string, "Etc/UTC")
    spread    = optional(string, "1h")
  })
  default  = {}
  nullable = false

  validation {
    condition     = can(regex(local.cron, var.nightly.schedule))
    error_message = "The nightly round's schedule \"${var.nightly.schedule}\" is no cron line, such as \"0 3 * * *\"."
  }

  validation {
    condition     = can(regex(local.time_zone, var.nightly.time_zone))
    error_message = "The nightly round's time_zone \"${var.nightly.time_zone}\" is none, such as Europe/Berlin."
  }

  # The worker refuses a longer one, every night.
  validation {
    condition     = can(regex("^([0-9]{1,6}[hms])+$", var.nightly.spread)) && sum(concat([0], [for p in regexall("([0-9]+)([hms])", var.nightly.spread) : tonumber(p[0]) * { h = 3600, m = 60, s = 1 }[p[1]]])) <= 86400
    error_message = "The nightly round's spread \"${var.nightly.spread}\" must be a duration of at most 24h, such as 1h or 1h30m."
  }
}

variable "paused" {
  description = "Whether nothing may write profiles: pushes, tasks, schedules and imports wait, while events are accepted and stored profiles served. For a failover."
  type        = bool
  default     = false
  nullable    = false
}

variable "alert_email" {
  description = "Address that alerts and the budget write to. Null: alerts are shown in the console only."
  type        = string
  default     = null
}

variable "billing_account" {
  description = "Billing account of the project, such as 012345-6789AB-CDEF01 (`gcloud billing projects describe PROJECT`). With it the project gets a budget that sends mail at 50, 90 and 100 percent of monthly_budget. It needs the role roles/billing.costsManager on the billing account. Null: no budget."
  type        = string
  default     = null

  validation {
    condition     = var.billing_account == null || can(regex("^[0-9A-F]{6}(-[0-9A-F]{6}){2}$", var.billing_account))
    error_message = "billing_account \"${coalesce(var.billing_account, "null")}\" must be three groups of six digits and letters A to F, such as 012345-6789AB-CDEF01."
  }
}

variable "monthly_budget" {
  description = "Budget of the project for a month, in the currency of the billing account. Nothing stops when it is spent."
  type        = number
  default     = 1000
  nullable    = false

  validation {
    condition     = var.monthly_budget >= 1 && floor(var.monthly_budget) == var.monthly_budget
    error_message = "monthly_budget ${var.monthly_budget} must be a whole number, 1 or more."
  }
}
