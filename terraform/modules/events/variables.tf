variable "project_number" {
  description = "Number of the project. The name of Pub/Sub's own account in the project contains it."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[0-9]+$", var.project_number))
    error_message = "project_number \"${var.project_number}\" must be the project's number, in digits, not its id."
  }
}

variable "events" {
  description = "Topic of accepted events, and the subscription that pushes them to process."
  type        = object({ name = string, subscription = string })
  nullable    = false
}

variable "slow_events" {
  description = "Topic of the events of apps that are over their limit, and the subscription that pushes them to the second process."
  type        = object({ name = string, subscription = string })
  nullable    = false

  validation {
    condition     = var.slow_events.name != var.events.name && var.slow_events.subscription != var.events.subscription
    error_message = "slow_events must name another topic and another subscription than events, or they would wait in one queue."
  }
}

variable "dead_letters" {
  description = "Topic of messages that could not be applied, and the subscription that keeps them until they are replayed."
  type        = object({ name = string, subscription = string })
  nullable    = false

  validation {
    condition     = !contains([var.events.name, var.slow_events.name], var.dead_letters.name) && !contains([var.events.subscription, var.slow_events.subscription], var.dead_letters.subscription)
    error_message = "dead_letters must name another topic and another subscription than events and slow_events, or Pub/Sub would push dead letters to process again and again."
  }
}

variable "ending" {
  description = "Ending of the names of the topics and subscriptions, behind that of a dedicated customer, such as .us: the engine expects the name of the data region behind a dot."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^([.][a-z0-9-]{1,40})?$", var.ending))
    error_message = "ending \"${var.ending}\" must be a dot and the name of a data region, or empty."
  }
}

variable "storage_regions" {
  description = "The only regions in which Pub/Sub may store messages. Null: Pub/Sub chooses, mostly that of who publishes."
  type        = list(string)
  default     = null
}

variable "push_account" {
  description = "An account as which Pub/Sub calls process. Null: one is created."
  type        = object({ email = string })
  default     = null
}

variable "process_uri" {
  description = "run.app URL of the function process, which Pub/Sub pushes events to."
  type        = string
  nullable    = false
}

variable "process_slow_uri" {
  description = "run.app URL of the second process, which Pub/Sub pushes slow events to."
  type        = string
  nullable    = false
}

variable "dedicated" {
  description = "Customers with a topic and a process of their own, by name: the run.app URL of that process, the members that may publish to the topic, by any label, and whether it runs empty, so that it may be deleted."
  type        = map(object({ process_uri = string, publishers = optional(map(string), {}), draining = optional(bool, false) }))
  default     = {}
  nullable    = false

  validation {
    condition     = length(setintersection([for name in keys(var.dedicated) : "${var.events.name}-${name}"], [var.slow_events.name, var.dead_letters.name])) == 0
    error_message = "The topic of a dedicated customer is that of slow_events or dead_letters: ${join(", ", setintersection([for name in keys(var.dedicated) : "${var.events.name}-${name}"], [var.slow_events.name, var.dead_letters.name]))}."
  }
}

variable "deletion_protection" {
  description = "Whether topics and subscriptions refuse to be deleted, but for those of a customer who is draining and those of the archive."
  type        = bool
  default     = true
  nullable    = false
}

variable "paused" {
  description = "Whether Pub/Sub stops pushing, so that messages wait."
  type        = bool
  default     = false
  nullable    = false
}

variable "ack_deadline_seconds" {
  description = "Seconds that Pub/Sub waits for an answer to a push. At least the timeout of the function."
  type        = number
  default     = 570
  nullable    = false

  validation {
    condition     = var.ack_deadline_seconds >= 10 && var.ack_deadline_seconds <= 600
    error_message = "ack_deadline_seconds ${var.ack_deadline_seconds} must be from 10 to 600."
  }
}

variable "max_delivery_attempts" {
  description = "Number of attempts after which Pub/Sub itself gives a message up. process gives up after 20 failures, or at attempt 95, and records the reason, so Pub/Sub gives up only if process cannot."
  type        = number
  default     = 100
  nullable    = false

  validation {
    condition     = var.max_delivery_attempts > 20 && var.max_delivery_attempts <= 100
    error_message = "max_delivery_attempts ${var.max_delivery_attempts} must be from 21 to 100: process gives a message up after 20 attempts."
  }
}

variable "replay_days" {
  description = "Number of days for which Pub/Sub keeps applied events, so that they can be applied again, for instance after the loss of a cluster. 0: none."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = var.replay_days >= 0 && var.replay_days <= 31
    error_message = "replay_days ${var.replay_days} must be from 0 to 31."
  }
}

variable "publishers" {
  description = "Members that may publish to the topics of events, by any label."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "buriers" {
  description = "Members that may publish to the topic of dead letters, by any label."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "archive" {
  description = "Bucket to create for an archive of all messages of events, its region, the age in days at which Cloud Storage deletes a file, and whether the bucket cannot be deleted while it has files. Null: none."
  type        = object({ bucket = string, location = string, days = number, deletion_protection = optional(bool, true) })
  default     = null

  validation {
    condition     = var.archive == null ? true : floor(var.archive.days) == var.archive.days && var.archive.days >= 1 && var.archive.days <= 30
    error_message = "archive.days ${try(var.archive.days, "null")} must be a whole number from 1 to 30: files hold users who were deleted since."
  }
}

variable "grant_seconds" {
  description = "Seconds that an apply waits after grants to Pub/Sub's own account, before what needs them. Tests wait for none."
  type        = number
  default     = 60
}
