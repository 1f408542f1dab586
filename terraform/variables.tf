variable "project_id" {
  description = "ID of the Google Cloud project. One project holds one engine."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project_id))
    error_message = "project_id \"${var.project_id}\" must be 6 to 30 lower-case letters, digits and hyphens: the id, not the name or the number."
  }
}

variable "environment" {
  description = "Name of the environment, such as dev or prod. It becomes a label on every resource, by which costs can be split."
  type        = string
  default     = "dev"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,62}$", var.environment))
    error_message = "environment \"${var.environment}\" must be lower-case letters, digits and hyphens and begin with a letter."
  }
}

variable "region" {
  description = "Region of the functions, of the Firestore database, and of clusters without a zone. Do not change it later: Firestore databases and Bigtable clusters cannot move, so Terraform would replace both and lose their data."
  type        = string
  default     = "europe-west1"
  nullable    = false

  validation {
    condition     = contains(local.regions, var.region)
    error_message = "\"${var.region}\" is not a known region of Google Cloud. Known regions: ${join(", ", local.regions)}. Add a newer region in regions.tf."
  }
}

variable "serving_regions" {
  description = "Regions besides region in which the public functions run, behind the same address: a request goes to the nearest one. Each has instances of its own, of the same sizes. Bigtable clusters may lie there too (clusters), so that stored profiles are read nearby."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = length(setsubtract(var.serving_regions, local.regions)) == 0
    error_message = "serving_regions has ${join(", ", setsubtract(var.serving_regions, local.regions))}, which is no known region of Google Cloud. Add a newer region in regions.tf."
  }

  validation {
    condition     = !contains(var.serving_regions, var.region) && length(distinct(var.serving_regions)) == length(var.serving_regions)
    error_message = "serving_regions must name each region once, and not ${var.region}, where the functions run anyway: ${join(", ", var.serving_regions)}."
  }
}

variable "data_regions" {
  description = <<-EOT
    Regions besides region in which apps may live, by the name that `affinity app create --region` and `app move --to` take: the region
    of Google Cloud, the clusters of its Bigtable instance as in clusters, and by function the instances of process, process-slow and
    worker that wait. The instance is named affinity-NAME unless bigtable_instance says another name. With draining no app can be
    created there or move there. Take a region out only when it drains and no app lives there (`affinity app list`): the requests of an
    app whose region is missing fail.
  EOT
  type = map(object({
    region = string
    clusters = optional(map(object({
      zone               = optional(string)
      serves             = optional(bool, true)
      min_nodes          = optional(number, 1)
      max_nodes          = optional(number, 1)
      cpu_target         = optional(number, 60)
      storage_target_gib = optional(number, 2560)
    })), { cluster-1 = {} })
    primary_cluster   = optional(string)
    bigtable_instance = optional(string)
    draining          = optional(bool, false)
    min_instances     = optional(map(number), {})
  }))
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for name in keys(var.data_regions) : can(regex("^[a-z0-9-]{1,40}$", name)) && name != local.home])
    error_message = "The name of a data region must be 1 to 40 lower-case letters, digits and hyphens, and not ${local.home}, the name of the region of the deployment: ${join(", ", keys(var.data_regions))}."
  }

  validation {
    condition     = alltrue([for r in values(var.data_regions) : contains(local.regions, r.region)])
    error_message = "data_regions has ${join(", ", [for name, r in var.data_regions : "${name} in ${r.region}" if !contains(local.regions, r.region)])}, which is no known region of Google Cloud. Add a newer region in regions.tf."
  }

  # Functions and queues have the same names in each region.
  validation {
    condition     = length(distinct(concat([var.region], [for r in values(var.data_regions) : r.region]))) == length(var.data_regions) + 1
    error_message = "Each data region must be in a region of its own, and not in ${var.region}, where apps live that name no region: ${join(", ", [for name, r in var.data_regions : "${name} in ${r.region}"])}."
  }

  validation {
    condition     = alltrue([for r in values(var.data_regions) : length(r.clusters) >= 1 && (r.primary_cluster == null ? length(r.clusters) == 1 : contains(keys(r.clusters), coalesce(r.primary_cluster, "-")))])
    error_message = "A data region needs a cluster and, with several, primary_cluster with the id of one of them: ${join(", ", [for name, r in var.data_regions : "${name} has ${join(", ", keys(r.clusters))}" if length(r.clusters) == 0 || (r.primary_cluster == null ? length(r.clusters) != 1 : !contains(keys(r.clusters), coalesce(r.primary_cluster, "-")))])}."
  }

  validation {
    condition     = alltrue([for r in values(var.data_regions) : length(setsubtract(keys(r.min_instances), [for key, d in local.deployed : key if !contains(local.public, d.of)])) == 0])
    error_message = "min_instances of a data region may name ${join(", ", [for key, d in local.deployed : key if !contains(local.public, d.of)])}, and not ${join(", ", flatten([for r in values(var.data_regions) : setsubtract(keys(r.min_instances), [for key, d in local.deployed : key if !contains(local.public, d.of)])]))}."
  }

  validation {
    condition     = alltrue(flatten([for r in values(var.data_regions) : [for c in values(r.clusters) : c.zone == null || can(regex("^(${join("|", local.regions)})-[a-z]$", coalesce(c.zone, "-")))]]))
    error_message = "These clusters of data regions are not in a zone of a known region, such as us-central1-b: ${join(", ", flatten([for name, r in var.data_regions : [for id, c in r.clusters : "${id} of ${name} (${c.zone})" if c.zone != null && !can(regex("^(${join("|", local.regions)})-[a-z]$", coalesce(c.zone, "-")))]]))}."
  }
}

variable "region_name" {
  description = "Name of region as a region of data, such as eu: what `affinity app region` prints for an app that names no region. Null: as region. Do not change it once apps have been created with it or moved back to it."
  type        = string
  default     = null

  validation {
    condition     = var.region_name == null || can(regex("^[a-z0-9-]{1,40}$", coalesce(var.region_name, "-")))
    error_message = "region_name \"${coalesce(var.region_name, "null")}\" must be 1 to 40 lower-case letters, digits and hyphens."
  }
}

variable "dedicated_tables" {
  description = "Sets of Bigtable tables beside the common ones, by name, each for an app that `affinity app isolate` moves there: in the instance of region, or in that of the data region that it names. Take a set out only when no app is there: the requests of an app whose tables are missing fail."
  type = map(object({
    region = optional(string)
  }))
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for name in keys(var.dedicated_tables) : can(regex("^[a-z0-9-]{1,36}$", name)) && name != local.home && !contains(keys(var.data_regions), name)])
    error_message = "The name of a set of tables must be 1 to 36 lower-case letters, digits and hyphens, and not that of a region of data: ${join(", ", keys(var.dedicated_tables))}."
  }

  validation {
    condition     = alltrue([for set in values(var.dedicated_tables) : contains(concat([local.home], keys(var.data_regions)), coalesce(set.region, local.home))])
    error_message = "dedicated_tables names regions that do not exist: ${join(", ", [for name, set in var.dedicated_tables : "${name} in ${coalesce(set.region, local.home)}" if !contains(concat([local.home], keys(var.data_regions)), coalesce(set.region, local.home))])}. Regions of data: ${join(", ", concat([local.home], keys(var.data_regions)))}."
  }
}

variable "clusters" {
  description = <<-EOT
    Bigtable clusters by id. A cluster without a zone is in zone b of the region. Bigtable keeps between min_nodes and
    max_nodes, so that CPU stays near cpu_target percent and a node stores no more than storage_target_gib GiB, up to 5120 with
    SSD: a node that stores more costs less for each event, and caches less of its data. Clusters serve stored profiles unless serves is false; the engine
    writes to primary_cluster. Do not change the zone of a cluster: Terraform would replace the instance and lose its data. Add a
    cluster with a new id, fail over, and remove the old one.
  EOT
  type = map(object({
    zone               = optional(string)
    serves             = optional(bool, true)
    min_nodes          = optional(number, 1)
    max_nodes          = optional(number, 1)
    cpu_target         = optional(number, 60)
    storage_target_gib = optional(number, 2560)
  }))
  default  = { cluster-1 = {} }
  nullable = false

  validation {
    condition     = alltrue([for c in values(var.clusters) : c.zone == null || can(regex("^(${join("|", local.regions)})-[a-z]$", coalesce(c.zone, "-")))])
    error_message = "These clusters are not in a zone of a known region, such as europe-west1-b: ${join(", ", [for id, c in var.clusters : "${id} (${c.zone})" if c.zone != null && !can(regex("^(${join("|", local.regions)})-[a-z]$", coalesce(c.zone, "-")))])}."
  }
}

variable "primary_cluster" {
  description = "Cluster that the engine writes to. May be null if there is only one cluster. Changing it is a failover: follow functions/docs/operate/failover.md."
  type        = string
  default     = null

  # There is no default among several clusters: the first by name would change when a
  # cluster is added before it.
  validation {
    condition     = var.primary_cluster != null || length(var.clusters) <= 1
    error_message = "primary_cluster is not set, but there are several clusters: set it to one of ${join(", ", keys(var.clusters))}. When you add a cluster, set it to the existing one."
  }

  validation {
    condition     = var.primary_cluster == null || contains(keys(var.clusters), coalesce(var.primary_cluster, "-"))
    error_message = "primary_cluster \"${coalesce(var.primary_cluster, "null")}\" is not one of the clusters: ${join(", ", keys(var.clusters))}."
  }
}

variable "bigtable_instance" {
  description = "Name of the Bigtable instance. Change it only to restore a backup, as functions/docs/operate/restore.md says: another name is another instance, without the data."
  type        = string
  default     = "affinity"
  nullable    = false
}

variable "firestore_database" {
  description = "Name of the Firestore database that holds the configuration. Change it only to restore a backup, as functions/docs/operate/restore.md says: another name is another database, without the data."
  type        = string
  default     = "affinity"
  nullable    = false
}

variable "firestore_keys_database" {
  description = "Name of the Firestore database that holds the apps' keys. Change it only to restore a backup, as functions/docs/operate/restore.md says."
  type        = string
  default     = "affinity-keys"
  nullable    = false

  validation {
    condition     = var.firestore_keys_database != var.firestore_database
    error_message = "firestore_keys_database \"${var.firestore_keys_database}\" is also firestore_database: public functions write that one, and could make keys in it."
  }
}

variable "longest_retention_days" {
  description = "Longest retention of all apps, in days. Bigtable drops events that are more than a day older, so raise it before you raise an app's retention. 0: an app keeps its events forever. Null: 90, only in the environment dev. A smaller value than that of the last apply needs allow_loss."
  type        = number
  default     = null

  validation {
    condition     = coalesce(var.longest_retention_days, 0) >= 0 && floor(coalesce(var.longest_retention_days, 0)) == coalesce(var.longest_retention_days, 0) && coalesce(var.longest_retention_days, 0) <= 36500
    error_message = "longest_retention_days ${coalesce(var.longest_retention_days, 0)} must be a whole number from 0 to 36500."
  }

  # A default would shorten the retention of a deployment whose file lost the line.
  validation {
    condition     = var.environment == "dev" || var.longest_retention_days != null
    error_message = "longest_retention_days is not set, and only the environment dev has a default: state the longest retention of all apps of ${var.environment}, or Bigtable drops events that an app still counts."
  }
}

variable "replay_days" {
  description = "Number of days for which Pub/Sub keeps applied events, so that they can be applied again after a failover or a restore. 0: none."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = var.replay_days >= 0 && var.replay_days <= 31
    error_message = "replay_days ${var.replay_days} must be from 0 to 31."
  }
}

variable "archive_days" {
  description = "Number of days for which Cloud Storage keeps an archive of all accepted events, which `affinity import --archive` restores from. A deletion of a user does not reach it, so at most 30. 0: no archive."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = var.archive_days >= 0 && floor(var.archive_days) == var.archive_days && var.archive_days <= 30
    error_message = "archive_days ${var.archive_days} must be a whole number from 0 to 30: the archive holds users who were deleted since."
  }
}

variable "warehouse" {
  description = "Whether BigQuery gets a row of each event, for analysts: a dataset named affinity in the region, with the view events. `affinity plan --warehouse-days` says what it costs."
  type        = bool
  default     = false
  nullable    = false
}

variable "warehouse_days" {
  description = "Number of days, by the time of the event, for which BigQuery keeps the rows of the warehouse. 0: for ever."
  type        = number
  default     = 400
  nullable    = false

  validation {
    condition     = var.warehouse_days >= 0 && floor(var.warehouse_days) == var.warehouse_days
    error_message = "warehouse_days ${var.warehouse_days} must be a whole number, 0 or more."
  }
}

variable "allow_loss" {
  description = "Names of variables of which this one apply may keep less than the last one, such as [\"longest_retention_days\"], although Google then deletes data. Give it on the command line, not in a file: a plan refuses a name by which it loses nothing."
  type        = set(string)
  default     = []
  nullable    = false

  validation {
    condition     = length(setsubtract(var.allow_loss, keys(local.losses))) == 0
    error_message = "allow_loss names ${join(", ", setsubtract(var.allow_loss, keys(local.losses)))}. It may name ${join(", ", keys(local.losses))}."
  }
}

variable "deletion_protection" {
  description = "Whether Bigtable, Firestore, topics, subscriptions, queues and the key of parents refuse to be deleted. Set it to false, and apply, before a teardown."
  type        = bool
  default     = true
  nullable    = false
}

variable "generation" {
  description = "Ending of the names that Google keeps reserved after a teardown: of the queues, of Bigtable's roles that connect, and of the key ring. Set another one to deploy again in the project of a former deployment, such as \"2\". It cannot change later."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9]{0,8}$", var.generation))
    error_message = "generation \"${var.generation}\" must be at most 8 of a-z and 0-9."
  }
}

variable "backup_days" {
  description = "Number of days that daily backups of Firestore and of each Bigtable table are kept. 0: no backups. functions/docs/operate/restore.md says how to restore them."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = var.backup_days == 0 || var.backup_days >= 3 && var.backup_days <= 90 && floor(var.backup_days) == var.backup_days
    error_message = "backup_days ${var.backup_days} must be 0, for no backups, or a whole number from 3 to 90."
  }
}

variable "point_in_time_recovery" {
  description = "Whether Firestore keeps every version of its documents for seven days, so that the database can be restored as of any minute."
  type        = bool
  default     = false
  nullable    = false
}

variable "source_dir" {
  description = "Directory where `go run ./scripts/package` wrote the functions' zips. Null: plan without the zips, to see what would be created. Such a plan cannot be applied."
  type        = string
  default     = "../dist"
}

variable "release" {
  description = "Commit whose zips the plan deploys, as `go run ./scripts/package` prints it. Needed when it is not the one of the last apply, and for zips of a changed checkout. Give it with -var: in a file it would go on naming a former commit."
  type        = string
  default     = null
}

variable "functions" {
  description = "Sizes of functions that differ from sizes.tf, by name, such as { profiles = { min_instances = 2 } }. billing = \"instances\" has a function billed by the instances that exist, without a fee for requests, which is cheaper from about ten requests a second on (functions/docs/operate/costs.md). A function ends a request itself after the timeout of sizes.tf, so a longer timeout_seconds changes nothing. A dedicated customer's functions have the same sizes, unless they are named, such as process-acme."
  type = map(object({
    min_instances   = optional(number)
    max_instances   = optional(number)
    concurrency     = optional(number)
    cpu             = optional(string)
    memory          = optional(string)
    timeout_seconds = optional(number)
    billing         = optional(string)
  }))
  default  = {}
  nullable = false

  validation {
    condition     = length(setsubtract(keys(var.functions), concat(keys(local.sizes), keys(local.deployed)))) == 0
    error_message = "These functions do not exist: ${join(", ", setsubtract(keys(var.functions), concat(keys(local.sizes), keys(local.deployed))))}. Functions: ${join(", ", distinct(concat(keys(local.sizes), keys(local.deployed))))}."
  }

  validation {
    condition     = alltrue([for f in values(var.functions) : coalesce(f.timeout_seconds, 60) <= 600])
    error_message = "timeout_seconds must be at most 600, because no caller waits longer: ${join(", ", [for name, f in var.functions : name if coalesce(f.timeout_seconds, 60) > 600])}."
  }

  # A task of a job starts no user after four minutes, but an audit compares for eight.
  validation {
    condition     = coalesce(try(var.functions["worker"].timeout_seconds, 600), 600) >= 600
    error_message = "timeout_seconds of worker must be 600, not ${coalesce(try(var.functions["worker"].timeout_seconds, 600), 600)}: an audit takes eight minutes, and starts again if it is cut off."
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
    error_message = "At their maximum the functions need ${local.run_total.cpu} vCPU and ${local.run_total.memory_gib} GiB, but Cloud Run's quota of this project in ${var.region} is ${var.run_quota.cpu} vCPU and ${var.run_quota.memory_gib} GiB (run_quota). Lower max_instances in functions or customers, or ask for more quota and then set run_quota: see \"Quotas to ask for before production\" in functions/docs/operate/deploy.md. vCPU of each function: ${join(", ", [for key, m in local.run_maximum : "${key} ${m.cpu}"])}."
  }
}

variable "nightly" {
  description = "When the nightly round starts for apps without their own schedule, and the time over which its work is spread."
  type = object({
    schedule  = optional(string, "0 3 * * *")
    time_zone = optional(string, "Etc/UTC")
    spread    = optional(string, "1h")
  })
  default  = {}
  nullable = false

  validation {
    condition     = can(regex(local.cron, var.nightly.schedule))
    error_message = "The nightly round's schedule \"${var.nightly.schedule}\" is not a cron line such as \"0 3 * * *\"."
  }

  validation {
    condition     = can(regex(local.time_zone, var.nightly.time_zone))
    error_message = "The nightly round's time_zone \"${var.nightly.time_zone}\" is not a time zone such as Europe/Berlin."
  }

  # The worker refuses a longer spread.
  validation {
    condition     = can(regex("^([0-9]{1,6}[hms])+$", var.nightly.spread)) && sum(concat([0], [for p in regexall("([0-9]+)([hms])", var.nightly.spread) : tonumber(p[0]) * { h = 3600, m = 60, s = 1 }[p[1]]])) <= 86400
    error_message = "The nightly round's spread \"${var.nightly.spread}\" must be a duration of at most 24h, such as 1h or 1h30m."
  }
}

variable "secured_keys" {
  description = "Whether keys may be parents of secured keys. It creates a key ring, which Google never deletes, and a key of Cloud KMS in the region. Without the key every parent is useless, so false after true needs allow_loss."
  type        = bool
  default     = false
  nullable    = false
}

variable "parents_admins" {
  description = "Who may create parents of secured keys, such as [\"user:ann@example.com\"]: they may encrypt with the key of Cloud KMS, not decrypt."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "paused" {
  description = "Whether writes of profiles stop: pushes, tasks, schedules and imports wait, while the engine accepts events and serves stored profiles. For a failover or a restore."
  type        = bool
  default     = false
  nullable    = false
}

variable "alert_email" {
  description = "Address that alerts and the budget write to. Null: alerts are shown in the console only."
  type        = string
  default     = null
}

variable "objectives" {
  description = "What the engine promises over 28 days, as modules/monitoring describes it; what is not set has the default there, which is stricter where ingest and profiles keep an instance (min_instances). Cloud Monitoring shows whether it is kept, and alerts open before it is missed."
  type = object({
    availability   = optional(number)
    stored         = optional(number)
    stored_ms      = optional(number)
    latency        = optional(number)
    latency_ms     = optional(number)
    freshness      = optional(number)
    fresh_seconds  = optional(number)
    least_requests = optional(number)
  })
  default  = {}
  nullable = false
}

variable "alert_thresholds" {
  description = "When alerts open, as modules/monitoring describes it; what is not set has the default there."
  type = object({
    oldest_message_seconds = optional(number)
    lag_ms                 = optional(number)
    dead_letters           = optional(number)
    error_ratio            = optional(number)
    failures_per_minute    = optional(number)
    denied_per_minute      = optional(number)
    failed_folds           = optional(number)
    cpu_load               = optional(number)
    hottest_load           = optional(number)
    storage_utilization    = optional(number)
    replication_seconds    = optional(number)
    renotify_seconds       = optional(number)
  })
  default  = {}
  nullable = false
}

variable "pack_window_ms" {
  description = "For how many milliseconds a request with events may wait for others of its app, so that they share a message to process: 0 to 500. A request waits only if another one came within the window before it. A longer window costs less where an app sends many requests a second (functions/docs/operate/costs.md, \"Larger messages\"), and adds as much to the answer and until the events count. 0: each request is a message of its own."
  type        = number
  default     = 5
  nullable    = false

  validation {
    condition     = var.pack_window_ms >= 0 && var.pack_window_ms <= 500 && floor(var.pack_window_ms) == var.pack_window_ms
    error_message = "pack_window_ms ${var.pack_window_ms} must be a whole number from 0 to 500."
  }
}

variable "audited_services" {
  description = "Services whose reads and writes of data Cloud Audit Logs record, besides changes of the configuration, which Google always records. Each replaces what the project has set for the service. Bigtable's and Firestore's would log every request of the engine."
  type        = set(string)
  default     = ["cloudkms.googleapis.com", "secretmanager.googleapis.com"]
  nullable    = false

  validation {
    condition     = alltrue([for s in var.audited_services : endswith(s, ".googleapis.com")])
    error_message = "audited_services must be names such as cloudkms.googleapis.com, but has ${join(", ", [for s in var.audited_services : s if !endswith(s, ".googleapis.com")])}."
  }
}

variable "request_log_sample" {
  description = "Share of Cloud Run's request logs that Logging keeps of requests that succeeded within a second, from 0 to 1. It keeps those of all other requests. The load balancer's log is a sample of its own."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = var.request_log_sample >= 0 && var.request_log_sample <= 1
    error_message = "request_log_sample ${var.request_log_sample} must be from 0 to 1."
  }
}

variable "message_log_sample" {
  description = "Share of process's lines \"events applied\" that Logging keeps of messages that were applied within a second, from 0 to 1. It keeps those of all other messages. The metrics of lag and events count every line."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = var.message_log_sample >= 0 && var.message_log_sample <= 1
    error_message = "message_log_sample ${var.message_log_sample} must be from 0 to 1."
  }
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

variable "deletion_slack" {
  type        = string
  default     = "3s"
  description = "How far the clocks of the machines that receive events may be ahead of the clock of the one that deletes a user: a deletion also covers events that are received within this time after it. From 1ms to 5m."
  validation {
    condition     = can(regex("^[0-9]+(ms|s|m)$", var.deletion_slack))
    error_message = "deletion_slack must be a whole number with ms, s or m, such as 3s."
  }
}

variable "data_boost" {
  type        = bool
  default     = false
  nullable    = false
  description = "Whether dumps of apps read the log by Bigtable's Data Boost, so that they take no CPU from the clusters. It costs at least 60 seconds of a serverless processing unit for each request, and needs SSD and the edition Enterprise."
}
