variable "name_prefix" {
  description = "Prefix of every resource's name."
  type        = string
  default     = "affinity"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,14}[a-z0-9]$", var.name_prefix))
    error_message = "name_prefix \"${var.name_prefix}\" must be 2 to 16 lower-case letters, digits and hyphens, begin with a letter and not end with a hyphen."
  }
}

variable "region" {
  description = "Region of the functions."
  type        = string
  nullable    = false
}

variable "more_regions" {
  description = "Other regions in which there are functions of the same names. A request goes to the nearest region."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "labels" {
  description = "Labels of the certificates."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "default_host" {
  description = "Host that serves every app, such as api.example.com. Null: only the customers' hosts are served."
  type        = string
  default     = null

  validation {
    condition     = var.default_host == null || can(regex("^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,63}$", var.default_host))
    error_message = "default_host \"${coalesce(var.default_host, "null")}\" must be a domain name in lower case, such as api.example.com."
  }
}

variable "dns_zone" {
  description = "Public zone of Cloud DNS that holds the records of the hosts in its domain: the zone's name, such as example-com, and its domain, such as example.com; its project if that is another one. Null: the records of all hosts are created by hand."
  type        = object({ name = string, domain = string, project = optional(string) })
  default     = null

  validation {
    condition     = var.dns_zone == null || can(regex("^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,63}$", var.dns_zone.domain))
    error_message = "dns_zone.domain must be a domain name in lower case without a dot at its end, such as example.com."
  }
}

variable "default_rate_limit" {
  description = "Requests per minute that one address may send to the default host."
  type        = number
  default     = 6000
  nullable    = false

  validation {
    condition     = floor(var.default_rate_limit) == var.default_rate_limit && var.default_rate_limit >= 1 && var.default_rate_limit <= 1000000
    error_message = "default_rate_limit ${var.default_rate_limit} must be a whole number from 1 to 1000000."
  }
}

variable "functions" {
  description = "Cloud Run service of each public function, by the function's name. Clients can reach only these."
  type        = map(string)
  nullable    = false

  validation {
    condition     = length(setsubtract(keys(var.routes), keys(var.functions))) == 0
    error_message = "Functions with routes but without a service: ${join(", ", setsubtract(keys(var.routes), keys(var.functions)))}."
  }

  validation {
    condition     = length(setsubtract(keys(var.functions), keys(var.routes))) == 0
    error_message = "Functions without a route, which are therefore not public: ${join(", ", setsubtract(keys(var.functions), keys(var.routes)))}."
  }
}

variable "console" {
  description = "Host and Cloud Run service of the console. The host serves nothing else, and no other host serves the console. Null: there is none."
  type = object({
    host       = string
    service    = string
    rate_limit = optional(number, 600)
  })
  default = null

  validation {
    condition     = var.console == null || can(regex("^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,63}$", var.console.host))
    error_message = "The console's host must be a domain name in lower case, such as console.example.com."
  }

  validation {
    condition     = var.console == null || !contains(concat(var.default_host[*], [for c in values(var.customers) : c.host]), try(var.console.host, "-"))
    error_message = "The console's host is also a host of the API."
  }
}

variable "routes" {
  description = "Path prefixes that each function serves, in whole segments. The longest matching prefix decides."
  type        = map(list(string))
  nullable    = false
  default = {
    ingest     = ["/1/events", "/v1", "/beacon"]
    imports    = ["/1/events/import"]
    profiles   = ["/1/profiles", "/1/usertokens", "/1/explain", "/1/optouts", "/1/consents", "/1/users", "/1/identities", "/1/events/recent"]
    rank       = ["/1/rank", "/1/recommend", "/1/boosts", "/1/feeds"]
    strategies = ["/1/strategies"]
    catalog    = ["/1/indexes", "/1/track-names"]
    admin      = ["/1/recomputes", "/1/reenrich", "/1/backtests", "/1/experiments", "/1/reports", "/1/crowd", "/1/schema", "/1/audits", "/1/usage", "/1/audit-log", "/1/export", "/1/dump", "/1/app", "/1/imports", "/1/identities/preview"]
    segments   = ["/1/segments", "/1/values"]
    docs       = ["/openapi.json", "/docs", "/client.js", "/client", "/health"]
  }

  validation {
    condition     = alltrue([for p in flatten(values(var.routes)) : can(regex("^(/[A-Za-z0-9_.-]+)+$", p))])
    error_message = "A path must begin with a slash, not end with one, and contain no wildcard: ${join(", ", [for p in flatten(values(var.routes)) : p if !can(regex("^(/[A-Za-z0-9_.-]+)+$", p))])}."
  }

  validation {
    condition     = length(flatten(values(var.routes))) == length(distinct(flatten(values(var.routes))))
    error_message = "These paths are listed more than once: ${join(", ", distinct([for p in flatten(values(var.routes)) : p if length([for q in flatten(values(var.routes)) : q if q == p]) > 1]))}."
  }
}

variable "fallback_function" {
  description = "Function that answers paths without a function, with 404."
  type        = string
  default     = "ingest"
  nullable    = false

  validation {
    condition     = contains(keys(var.functions), var.fallback_function)
    error_message = "fallback_function \"${var.fallback_function}\" is not one of the functions: ${join(", ", keys(var.functions))}."
  }
}

variable "customers" {
  description = "Customers by name. Each has its own host, where one address may send rate_limit requests per minute. services names the Cloud Run services of a dedicated customer's own functions."
  type = map(object({
    host       = optional(string, "")
    app_id     = string
    dedicated  = optional(bool, false)
    rate_limit = optional(number, 6000)
    services   = optional(map(string), {})
  }))
  default  = {}
  nullable = false

  validation {
    condition     = var.default_host != null || length(var.customers) > 0
    error_message = "No host is set: set default_host, or add a customer."
  }

  validation {
    condition     = alltrue([for name in keys(var.customers) : can(regex("^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$", name))])
    error_message = "A customer's name must be 1 to 20 lower-case letters, digits and hyphens, begin with a letter and not end with a hyphen: ${join(", ", [for name in keys(var.customers) : name if !can(regex("^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$", name))])}."
  }

  validation {
    condition     = alltrue([for c in values(var.customers) : c.host != ""])
    error_message = "Customers without a host: ${join(", ", [for name, c in var.customers : name if c.host == ""])}."
  }

  validation {
    condition     = alltrue([for c in values(var.customers) : c.host == "" || can(regex("^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,63}$", c.host))])
    error_message = "Customers whose host is not a domain name in lower case: ${join(", ", [for name, c in var.customers : "${name} (${c.host})" if c.host != "" && !can(regex("^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,63}$", c.host))])}."
  }

  validation {
    condition     = length(distinct([for c in values(var.customers) : c.host if c.host != ""])) == length([for c in values(var.customers) : c.host if c.host != ""])
    error_message = "Customers with the same host: ${join("; ", [for host in distinct([for c in values(var.customers) : c.host if c.host != ""]) : "${join(" and ", [for name, c in var.customers : name if c.host == host])} (${host})" if length([for c in values(var.customers) : c.host if c.host == host]) > 1])}."
  }

  validation {
    condition     = var.default_host == null || !contains([for c in values(var.customers) : c.host], coalesce(var.default_host, "-"))
    error_message = "Customers whose host is the default host, which serves every app: ${join(", ", [for name, c in var.customers : name if c.host == var.default_host])}."
  }

  validation {
    condition     = alltrue([for c in values(var.customers) : floor(c.rate_limit) == c.rate_limit && c.rate_limit >= 1 && c.rate_limit <= 1000000])
    error_message = "A customer's rate_limit must be a whole number from 1 to 1000000: ${join(", ", [for name, c in var.customers : "${name} (${c.rate_limit})" if floor(c.rate_limit) != c.rate_limit || c.rate_limit < 1 || c.rate_limit > 1000000])}."
  }

  validation {
    condition     = alltrue([for c in values(var.customers) : toset(keys(c.services)) == toset(c.dedicated ? ["ingest", "profiles"] : [])])
    error_message = "A dedicated customer must have the services ingest and profiles, and any other customer none: ${join(", ", [for name, c in var.customers : "${name} (${length(c.services) == 0 ? "none" : join(" and ", keys(c.services))})" if toset(keys(c.services)) != toset(c.dedicated ? ["ingest", "profiles"] : [])])}."
  }
}

variable "log_sample_rate" {
  description = "Share of requests that the load balancer logs, from 0 to 1. These include requests that Cloud Armor refuses, which Cloud Run does not log."
  type        = number
  default     = 0.1
  nullable    = false

  validation {
    condition     = var.log_sample_rate >= 0 && var.log_sample_rate <= 1
    error_message = "log_sample_rate ${var.log_sample_rate} must be from 0 to 1."
  }
}

variable "release" {
  description = "Commit of the functions, for the header X-Affinity-Release of every answer. Null: no header."
  type        = string
  default     = null
}
