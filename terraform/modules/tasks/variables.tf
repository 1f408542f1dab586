variable "project_id" {
  description = "The project."
  type        = string
  nullable    = false
}

variable "region" {
  description = "Region of the queue and the schedules."
  type        = string
  nullable    = false
}

variable "queue" {
  description = "Queue of the worker's tasks. A deleted queue's name stays reserved for a week."
  type        = string
  default     = "worker"
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9-]{1,100}$", var.queue))
    error_message = "queue \"${var.queue}\" must be 1 to 100 letters, digits and hyphens."
  }
}

variable "purge_queue" {
  description = "Queue of the worker's purges of deleted users. A deleted queue's name stays reserved for a week."
  type        = string
  default     = "purges"
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9-]{1,100}$", var.purge_queue)) && var.purge_queue != var.queue
    error_message = "purge_queue \"${var.purge_queue}\" must be 1 to 100 letters, digits and hyphens, and another queue than ${var.queue}."
  }
}

variable "refresh_queues" {
  description = "Queues of the refreshes at the end of write windows. Cloud Tasks starts at most 500 tasks of a queue per second, so there may be several; a task's name chooses one. A deleted queue's name stays reserved for a week."
  type        = list(string)
  default     = ["refreshes-0", "refreshes-1"]
  nullable    = false

  validation {
    condition     = length(var.refresh_queues) >= 1 && length(distinct(concat(var.refresh_queues, [var.queue, var.purge_queue]))) == length(var.refresh_queues) + 2 && alltrue([for q in var.refresh_queues : can(regex("^[A-Za-z0-9-]{1,100}$", q))])
    error_message = "refresh_queues ${jsonencode(var.refresh_queues)} must be one or more names of 1 to 100 letters, digits and hyphens, all different, and other queues than ${var.queue} and ${var.purge_queue}."
  }
}

variable "worker_uri" {
  description = "The run.app URL of the worker."
  type        = string
  nullable    = false
}

variable "dedicated" {
  description = "Customers with a worker and queues of their own, by name: the worker's run.app URL, the maximum number of tasks that it runs at once, the members that may enqueue tasks, by any label, and whether their queues run empty, so that they may be deleted. Each member must be among the enqueuers, too."
  type        = map(object({ worker_uri = string, max_concurrent = number, enqueuers = optional(map(string), {}), draining = optional(bool, false) }))
  default     = {}
  nullable    = false
}

variable "tasks_account" {
  description = "An account as which Cloud Tasks calls worker, and as which the enqueuers may act. Null: one is created."
  type        = object({ email = string })
  default     = null
}

variable "deletion_protection" {
  description = "Whether the queues refuse to be deleted, but for those of a customer who is draining."
  type        = bool
  default     = true
  nullable    = false
}

variable "paused" {
  description = "Whether the queue and the schedules are paused."
  type        = bool
  default     = false
  nullable    = false
}

variable "max_concurrent" {
  description = "Maximum number of tasks of both queues that run at once: as many as the worker's instances accept together, and at least 2. The worker would refuse more, and the queues would retry them."
  type        = number
  default     = 20
  nullable    = false

  validation {
    condition     = var.max_concurrent >= 1 && var.max_concurrent <= 5000
    error_message = "max_concurrent ${var.max_concurrent} must be from 1 to 5000."
  }
}

variable "max_per_second" {
  description = "Maximum number of tasks that start per second."
  type        = number
  default     = 100
  nullable    = false

  validation {
    condition     = var.max_per_second > 0 && var.max_per_second <= 500
    error_message = "max_per_second ${var.max_per_second} must be above 0, at most 500."
  }
}

variable "max_attempts" {
  description = "Number of attempts after which a task is dropped. The worker itself gives up a shard after 8 attempts, and logs it; this limit is for everything else."
  type        = number
  default     = 100
  nullable    = false

  validation {
    condition     = var.max_attempts > 8
    error_message = "max_attempts ${var.max_attempts} must be above 8: the worker gives a shard up after 8 attempts."
  }
}

variable "enqueuers" {
  description = "Members that may enqueue tasks, by any label."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "nightly" {
  description = "When the nightly round starts for apps without their own schedule, and the time over which its work is spread. Null: no schedules, as in a region where another one's worker starts the rounds."
  type = object({
    schedule  = optional(string, "0 3 * * *")
    time_zone = optional(string, "Etc/UTC")
    spread    = optional(string, "1h")
  })
  default = {}

  validation {
    condition     = var.nightly == null || can(regex("^([0-9]{1,6}[hms])+$", try(var.nightly.spread, ""))) && sum(concat([0], [for p in regexall("([0-9]+)([hms])", try(var.nightly.spread, "")) : tonumber(p[0]) * { h = 3600, m = 60, s = 1 }[p[1]]])) <= 86400
    error_message = "The nightly round's spread \"${try(var.nightly.spread, "")}\" must be a duration of at most 24h, such as 1h or 1h30m."
  }
}

variable "schedules" {
  description = "Customers with their own nightly round, by name. The common round leaves out their apps."
  type        = map(object({ app_id = string, schedule = string, time_zone = optional(string, "Etc/UTC") }))
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for s in values(var.schedules) : length(split(" ", trimspace(s.schedule))) == 5])
    error_message = "A schedule must be a cron line of five fields: ${join(", ", [for name, s in var.schedules : "${name} has \"${s.schedule}\"" if length(split(" ", trimspace(s.schedule))) != 5])}."
  }
}

variable "full_schedules" {
  description = "Customers with a round that computes every profile, by name. Their apps stay in the other rounds."
  type        = map(object({ app_id = string, schedule = string, time_zone = optional(string, "Etc/UTC") }))
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for s in values(var.full_schedules) : length(split(" ", trimspace(s.schedule))) == 5])
    error_message = "A full schedule must be a cron line of five fields: ${join(", ", [for name, s in var.full_schedules : "${name} has \"${s.schedule}\"" if length(split(" ", trimspace(s.schedule))) != 5])}."
  }
}
