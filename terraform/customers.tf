variable "dns_zone" {
  description = "Public zone of Cloud DNS in which Terraform creates the records of all hosts in its domain: its name, such as example-com, its domain, such as example.com, and its project if that is another one. Null: create the records that `terraform output dns_records` lists."
  type        = object({ name = string, domain = string, project = optional(string) })
  default     = null
}

variable "default_host" {
  description = "Host that serves every app, such as api.example.com. Null: only the customers' hosts are served. Without a host and without a customer, nothing can be reached from outside."
  type        = string
  default     = null

  validation {
    condition     = var.default_host == null || can(regex(local.host, var.default_host))
    error_message = "default_host \"${coalesce(var.default_host, "null")}\" must be a domain name in lower case, such as api.example.com."
  }
}

variable "customers" {
  description = <<-EOT
    Customers by name. Each has its own endpoint.
    host: domain name that serves the customer's app and no other app.
    app_id: the customer's app, which `affinity app create` creates.
    dedicated: whether the customer has its own functions ingest, profiles, process and worker, whose instances no other
      customer uses, with its own topic of events and its own queues of tasks and purges.
    draining: whether the events and tasks of a dedicated customer go to the common topic and queues, so that their own
      run empty. Set it, and wait until they are empty, before dedicated becomes false.
    min_instances, max_instances: numbers of instances of each of its ingest and profiles. Ignored without dedicated. Its
      process and worker have the maximum of the common ones and no warm instance, unless functions names them, such as
      worker-acme.
    rate_limit: requests per minute that one address may send.
    schedule: cron line of the customer's own nightly round, in time_zone. Without it the customer is in the common round.
    full_schedule: cron line of a round that computes every profile of the app, in time_zone, such as once a week. A nightly
      round computes those that are no longer valid.
  EOT
  type = map(object({
    host          = optional(string, "")
    app_id        = optional(string, "")
    dedicated     = optional(bool, false)
    draining      = optional(bool, false)
    min_instances = optional(number)
    max_instances = optional(number)
    rate_limit    = optional(number, 6000)
    schedule      = optional(string)
    full_schedule = optional(string)
    time_zone     = optional(string, "Etc/UTC")
  }))
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for name in keys(var.customers) : can(regex("^[a-z]([a-z0-9-]{0,13}[a-z0-9])?$", name))])
    error_message = "A customer's name must be 1 to 15 lower-case letters, digits and hyphens, begin with a letter and not end with a hyphen: ${join(", ", [for name in keys(var.customers) : name if !can(regex("^[a-z]([a-z0-9-]{0,13}[a-z0-9])?$", name))])}."
  }

  # The common topics and functions have names with these endings.
  validation {
    condition     = length(setintersection(keys(var.customers), ["slow", "dead-letter"])) == 0
    error_message = "A customer cannot have the name ${join(" or ", setintersection(keys(var.customers), ["slow", "dead-letter"]))}: the engine itself uses it."
  }

  validation {
    condition     = alltrue([for c in values(var.customers) : c.dedicated || !c.draining])
    error_message = "Customers that drain without being dedicated: ${join(", ", [for name, c in var.customers : name if c.draining && !c.dedicated])}."
  }

  validation {
    condition     = alltrue([for c in values(var.customers) : c.host != ""])
    error_message = "Customers without a host: ${join(", ", [for name, c in var.customers : name if c.host == ""])}."
  }

  validation {
    condition     = alltrue([for c in values(var.customers) : c.host == "" || can(regex(local.host, c.host))])
    error_message = "Customers whose host is not a domain name in lower case: ${join(", ", [for name, c in var.customers : "${name} (${c.host})" if c.host != "" && !can(regex(local.host, c.host))])}."
  }

  validation {
    condition     = length([for c in values(var.customers) : c.host if c.host != ""]) == length(distinct([for c in values(var.customers) : c.host if c.host != ""]))
    error_message = "Customers with the same host: ${join("; ", [for host in distinct([for c in values(var.customers) : c.host if c.host != ""]) : "${join(" and ", [for name, c in var.customers : name if c.host == host])} (${host})" if length([for c in values(var.customers) : c if c.host == host]) > 1])}."
  }

  validation {
    condition     = var.default_host == null || !contains([for c in values(var.customers) : c.host], coalesce(var.default_host, "-"))
    error_message = "Customers whose host is the default host, which serves every app: ${join(", ", [for name, c in var.customers : name if c.host == var.default_host])}."
  }

  validation {
    condition     = alltrue([for c in values(var.customers) : can(regex("^[A-Za-z0-9_-]{1,64}$", c.app_id))])
    error_message = "An app id is 1 to 64 letters, digits, underscores and hyphens, without a comma: ${join(", ", [for name, c in var.customers : "${name} (\"${c.app_id}\")" if !can(regex("^[A-Za-z0-9_-]{1,64}$", c.app_id))])}."
  }

  validation {
    condition     = length([for c in values(var.customers) : c.app_id if c.app_id != ""]) == length(distinct([for c in values(var.customers) : c.app_id if c.app_id != ""]))
    error_message = "Customers with the same app id: ${join("; ", [for id in distinct([for c in values(var.customers) : c.app_id if c.app_id != ""]) : "${join(" and ", [for name, c in var.customers : name if c.app_id == id])} (${id})" if length([for c in values(var.customers) : c if c.app_id == id]) > 1])}."
  }

  validation {
    condition     = alltrue([for c in values(var.customers) : c.schedule == null || can(regex(local.cron, coalesce(c.schedule, "-")))])
    error_message = "Customers whose schedule is not a cron line such as \"30 2 * * *\": ${join(", ", [for name, c in var.customers : "${name} (\"${c.schedule}\")" if c.schedule != null && !can(regex(local.cron, coalesce(c.schedule, "-")))])}."
  }

  validation {
    condition     = alltrue([for c in values(var.customers) : c.full_schedule == null || can(regex(local.cron, coalesce(c.full_schedule, "-")))])
    error_message = "Customers whose full_schedule is not a cron line such as \"30 2 * * sun\": ${join(", ", [for name, c in var.customers : "${name} (\"${c.full_schedule}\")" if c.full_schedule != null && !can(regex(local.cron, coalesce(c.full_schedule, "-")))])}."
  }

  validation {
    condition     = alltrue([for c in values(var.customers) : can(regex(local.time_zone, c.time_zone))])
    error_message = "Customers whose time_zone is not a time zone such as Europe/Berlin: ${join(", ", [for name, c in var.customers : "${name} (\"${c.time_zone}\")" if !can(regex(local.time_zone, c.time_zone))])}."
  }

  validation {
    condition     = alltrue([for c in values(var.customers) : c.rate_limit >= 1 && c.rate_limit <= 1000000 && floor(c.rate_limit) == c.rate_limit])
    error_message = "A customer's rate_limit must be a whole number from 1 to 1000000: ${join(", ", [for name, c in var.customers : "${name} (${c.rate_limit})" if c.rate_limit < 1 || c.rate_limit > 1000000 || floor(c.rate_limit) != c.rate_limit])}."
  }

  validation {
    condition     = alltrue([for c in values(var.customers) : coalesce(c.min_instances, 0) >= 0 && coalesce(c.max_instances, 10) >= max(1, coalesce(c.min_instances, 0)) && floor(coalesce(c.min_instances, 0)) == coalesce(c.min_instances, 0) && floor(coalesce(c.max_instances, 10)) == coalesce(c.max_instances, 10)])
    error_message = "A customer's instances must be whole numbers, max_instances (default 10) 1 or more and not below min_instances: ${join(", ", [for name, c in var.customers : "${name} (${coalesce(c.min_instances, 0)} to ${coalesce(c.max_instances, 10)})" if !(coalesce(c.min_instances, 0) >= 0 && coalesce(c.max_instances, 10) >= max(1, coalesce(c.min_instances, 0)) && floor(coalesce(c.min_instances, 0)) == coalesce(c.min_instances, 0) && floor(coalesce(c.max_instances, 10)) == coalesce(c.max_instances, 10))])}."
  }

  validation {
    condition     = alltrue([for c in values(var.customers) : coalesce(c.max_instances, 10) <= 1000])
    error_message = "A customer's max_instances must be at most 1000: ${join(", ", [for name, c in var.customers : "${name} (${c.max_instances})" if coalesce(c.max_instances, 10) > 1000])}."
  }
}

locals {
  host = "^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,63}$"

  # The form of a name in the time zone database. Only an apply shows whether the name
  # exists.
  time_zone = "^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$"

  # A cron line has five fields of numbers within their bounds, names of months and
  # days, ranges, lists and steps.
  cron_values = [
    "[0-5]?[0-9]",
    "(?:[01]?[0-9]|2[0-3])",
    "(?:0?[1-9]|[12][0-9]|3[01])",
    "(?:0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)",
    "(?:0?[0-7]|sun|mon|tue|wed|thu|fri|sat)",
  ]
  cron_items = [for v in local.cron_values : "(?:\\*|${v}(?:-${v})?)(?:/[1-9][0-9]?)?"]
  cron       = "(?i)^${join(" +", [for i in local.cron_items : "${i}(?:,${i})*"])}$"
}
