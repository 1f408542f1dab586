variable "project_id" {
  description = "The project."
  type        = string
  nullable    = false
}

variable "region" {
  description = "Where the queue and the schedules lie."
  type        = string
  nullable    = false
}

variable "queue" {
  description = "The queue of the worker's tasks. A name stays taken for a week after its queue was deleted."
  type        = string
  default     = "worker"
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9-]{1,100}$", var.queue))
    error_message = "queue \"${var.queue}\" must be 1 to 100 letters, digits and hyphens."
  }
}

variable "worker_uri" {
  description = "The run.app URL of the worker."
  type        = string
  nullable    = false
}

variable "paused" {
  description = "Whether tasks and schedules wait instead of being carried out."
  type        = bool
  default     = false
  nullable    = false
}

variable "max_concurrent" {
  description = "Tasks that are under way at once: as many as the worker's instances take together, since those beyond would only be refused and tried again."
  type        = number
  default     = 20
  nullable    = false

  validation {
    condition     = var.max_concurrent >= 1 && var.max_concurrent <= 5000
    error_message = "max_concurrent ${var.max_concurrent} must be from 1 to 5000."
  }
}

variable "max_per_second" {
  description = "Tasks that begin in a second."
  type        = number
  default     = 100
  nullable    = false

  validation {
    condition     = var.max_per_second > 0 && var.max_per_second <= 500
    error_message = "max_per_second ${var.max_per_second} must be above 0, at most 500."
  }
}

variable "max_attempts" {
  description = "After how many attempts a task is dropped. The worker gives a shard up after 8, and says so, so this is the net below it."
  type        = number
  default     = 100
  nullable    = false

  validation {
    condition     = var.max_attempts > 8
    error_message = "max_attempts ${var.max_attempts} must be above 8, after which the worker gives up by itself."
  }
}

variable "enqueuers" {
  description = "Who may order tasks: members by any label."
  type        = map(string)
  default     = {}
  nullable    = false
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
    condition     = can(regex("^([0-9]{1,6}[hms])+$", var.nightly.spread)) && sum(concat([0], [for p in regexall("([0-9]+)([hms])", var.nightly.spread) : tonumber(p[0]) * { h = 3600, m = 60, s = 1 }[p[1]]])) <= 86400
    error_message = "The nightly round's spread \"${var.nightly.spread}\" must be a duration of at most 24h, such as 1h or 1h30m."
  }
}

variable "schedules" {
  description = "Customers with a nightly round of their own, by name. The common round leaves their apps out."
  type        = map(object({ app_id = string, schedule = string, time_zone = optional(string, "Etc/UTC") }))
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for s in values(var.schedules) : length(split(" ", trimspace(s.schedule))) == 5])
    error_message = "A schedule is a cron line of five fields: ${join(", ", [for name, s in var.schedules : "${name} has \"${s.schedule}\"" if length(split(" ", trimspace(s.schedule))) != 5])}."
  }
}
