variable "name_prefix" {
  description = "Prefix of the names of metrics, alerts and the dashboard."
  type        = string
  default     = "affinity"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,14}[a-z0-9]$", var.name_prefix))
    error_message = "name_prefix \"${var.name_prefix}\" must be 2 to 16 lower-case letters, digits and hyphens, begin with a letter and not end with a hyphen."
  }
}

variable "labels" {
  description = "Labels of the alerts and of the channel."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "alert_email" {
  description = "Address that alerts and the budget write to. Null: alerts are shown in the console only."
  type        = string
  default     = null

  validation {
    condition     = var.alert_email == null || can(regex("^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$", var.alert_email))
    error_message = "alert_email \"${coalesce(var.alert_email, "null")}\" is not an email address."
  }
}

variable "services" {
  description = "Cloud Run services of each function, by the function's name: the shared one and those of dedicated customers."
  type        = map(list(string))
  nullable    = false

  validation {
    condition     = alltrue([for f in ["ingest", "profiles", "process", "worker"] : length(lookup(var.services, f, [])) > 0])
    error_message = "The dashboard and the alerts need a service of these functions: ${join(", ", [for f in ["ingest", "profiles", "process", "worker"] : f if length(lookup(var.services, f, [])) == 0])}."
  }
}

variable "private_functions" {
  description = "Functions that Pub/Sub and Cloud Tasks call. Both retry a failed call, so these functions have an alert with another threshold."
  type        = set(string)
  default     = ["process", "worker"]
  nullable    = false
}

variable "events_subscriptions" {
  description = "Subscriptions that push events to process: the shared one first, then those of dedicated customers."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.events_subscriptions) > 0
    error_message = "The alert on the backlog needs a subscription."
  }
}

variable "dead_letter_subscriptions" {
  description = "Subscriptions that keep dead letters until they are replayed: one for each data region."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.dead_letter_subscriptions) > 0
    error_message = "The alert on dead letters needs a subscription."
  }
}

variable "queues" {
  description = "Cloud Tasks queues of the worker."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.queues) > 0
    error_message = "The dashboard needs a queue."
  }
}

variable "firestore_database" {
  description = "Firestore database that the commands of the runbooks name."
  type        = string
  default     = "affinity"
  nullable    = false
}

variable "keys_database" {
  description = "Firestore database of keys that the commands of the runbooks name."
  type        = string
  default     = "affinity-keys"
  nullable    = false
}

variable "bigtable_instances" {
  description = "Bigtable instances: one for each data region. The commands of the runbooks name the first."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.bigtable_instances) > 0
    error_message = "The alerts on Bigtable need an instance."
  }
}

variable "budget" {
  description = "Monthly budget of the project: the billing account that pays, and an amount in the account's currency. Null: no budget."
  type = object({
    billing_account = string
    amount          = number
    project_id      = string
    project_number  = string
  })
  default = null
}

variable "security_policy" {
  description = "Cloud Armor policy whose refusals the dashboard shows. Null: none."
  type        = string
  default     = null
}

variable "thresholds" {
  description = <<-EOT
    When alerts open.
    oldest_message_seconds: age of the oldest event that is not applied, for five minutes.
    lag_ms: time from the receipt of events until profiles count them, the 99th percentile of five minutes.
    dead_letters: messages that wait for a replay.
    error_ratio: share of a public function's answers that are 5xx, in five minutes.
    failures_per_minute: 5xx answers of a private function a minute, for ten minutes. Its callers retry, so a few are normal.
    denied_per_minute: requests with wrong credentials for one app, at one instance of a function.
    failed_folds: histories of an app that could not be packed in ten minutes, for an hour.
    cpu_load: share of the CPU of a Bigtable cluster that is in use, for ten minutes.
    hottest_load: the same of a cluster's busiest node, for half an hour.
    storage_utilization: share of a Bigtable cluster's storage that is in use.
    replication_seconds: how far a Bigtable replica lags behind, for five minutes.
    renotify_seconds: minimum time between two mails about failed jobs, or about differences that audits found.
  EOT
  type = object({
    oldest_message_seconds = optional(number, 60)
    lag_ms                 = optional(number, 30000)
    dead_letters           = optional(number, 0)
    error_ratio            = optional(number, 0.01)
    failures_per_minute    = optional(number, 10)
    denied_per_minute      = optional(number, 600)
    failed_folds           = optional(number, 0)
    cpu_load               = optional(number, 0.8)
    hottest_load           = optional(number, 0.9)
    storage_utilization    = optional(number, 0.7)
    replication_seconds    = optional(number, 60)
    renotify_seconds       = optional(number, 3600)
  })
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for t in values(var.thresholds) : t >= 0])
    error_message = "A threshold must be 0 or more: ${join(", ", [for name, t in var.thresholds : name if t < 0])}."
  }

  validation {
    condition     = alltrue([for name in ["error_ratio", "cpu_load", "hottest_load", "storage_utilization"] : var.thresholds[name] < 1])
    error_message = "A threshold must be a share below 1: ${join(", ", [for name in ["error_ratio", "cpu_load", "hottest_load", "storage_utilization"] : "thresholds.${name} ${var.thresholds[name]}" if var.thresholds[name] >= 1])}."
  }

  validation {
    condition     = var.thresholds.lag_ms >= 1 && var.thresholds.oldest_message_seconds >= 1
    error_message = "thresholds.lag_ms and thresholds.oldest_message_seconds must be 1 or more."
  }

  validation {
    condition     = var.thresholds.renotify_seconds >= 300
    error_message = "thresholds.renotify_seconds ${var.thresholds.renotify_seconds} must be 300 or more."
  }
}

variable "objectives" {
  description = <<-EOT
    What the engine promises over 28 days, as shares.
    availability: share of requests to public functions that are not answered 5xx. Default: 0.9995 if warm, else 0.995.
    stored: share of reads of stored profiles that the engine answers within stored_ms. Default: 0.99 within 20 ms if warm, else 250 ms.
    latency: share of reads of profiles, also of those that are computed, that take at most latency_ms. Default: 0.99 within 250 ms.
    freshness: share of minutes in which no message of events waits longer than fresh_seconds. Default: 0.99, 30 s.
    least_requests: number of requests, or of messages, in the longer window of an alert on an objective, below which it does not open. Default: 1000.
  EOT
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

  validation {
    condition     = alltrue([for o in ["availability", "stored", "latency", "freshness"] : try(var.objectives[o] > 0 && var.objectives[o] <= 0.9999, var.objectives[o] == null)])
    error_message = "objectives.availability, stored, latency and freshness must be shares above 0, up to 0.9999."
  }

  validation {
    condition     = alltrue([for o in ["latency_ms", "fresh_seconds", "least_requests"] : try(var.objectives[o] > 0, var.objectives[o] == null)])
    error_message = "objectives.latency_ms, objectives.fresh_seconds and objectives.least_requests must be above 0."
  }

  validation {
    condition     = contains(local.lines.metrics[index(local.lines.metrics[*].name, "stored_reads")].bounds, coalesce(var.objectives.stored_ms, 20))
    error_message = "objectives.stored_ms must be a bound of the metric's buckets: ${join(", ", local.lines.metrics[index(local.lines.metrics[*].name, "stored_reads")].bounds)}."
  }
}

variable "warm" {
  description = "Whether the functions for which clients wait keep an instance. Without one, the first requests after a pause wait for its start, and the promises are looser."
  type        = bool
  default     = false
  nullable    = false
}

variable "hosts" {
  description = "Hosts of the load balancer that Google calls every minute. Empty: no uptime check."
  type        = set(string)
  default     = []
  nullable    = false
}

variable "console_host" {
  description = "Host of the console, which Google calls every five minutes. Null: there is none."
  type        = string
  default     = null
}

variable "project_id" {
  description = "Project that owns the uptime checks."
  type        = string
  nullable    = false
}
