variable "project_number" {
  description = "The number of the project, which names Pub/Sub's own account in it."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[0-9]+$", var.project_number))
    error_message = "project_number \"${var.project_number}\" must be digits: it is not the project's id."
  }
}

variable "events" {
  description = "The topic of accepted events, and the subscription that pushes them to process."
  type        = object({ name = string, subscription = string })
  nullable    = false
}

variable "dead_letters" {
  description = "The topic of messages that could not be applied, and the subscription that keeps them until they are replayed."
  type        = object({ name = string, subscription = string })
  nullable    = false

  validation {
    condition     = var.dead_letters.name != var.events.name && var.dead_letters.subscription != var.events.subscription
    error_message = "Dead letters need a topic and a subscription of their own: they would be pushed again for ever."
  }
}

variable "process_uri" {
  description = "The run.app URL of the function that events are pushed to."
  type        = string
  nullable    = false
}

variable "paused" {
  description = "Whether messages wait instead of being pushed."
  type        = bool
  default     = false
  nullable    = false
}

variable "ack_deadline_seconds" {
  description = "How long Pub/Sub waits for an answer to a push: no less than the function may take."
  type        = number
  default     = 570
  nullable    = false

  validation {
    condition     = var.ack_deadline_seconds >= 10 && var.ack_deadline_seconds <= 600
    error_message = "ack_deadline_seconds ${var.ack_deadline_seconds} must be from 10 to 600."
  }
}

variable "max_delivery_attempts" {
  description = "After how many attempts Pub/Sub itself gives a message up. process gives up after 20, with the reason, so this is the net below it."
  type        = number
  default     = 100
  nullable    = false

  validation {
    condition     = var.max_delivery_attempts > 20 && var.max_delivery_attempts <= 100
    error_message = "max_delivery_attempts ${var.max_delivery_attempts} must be above 20, after which process gives up by itself, and at most 100."
  }
}

variable "replay_days" {
  description = "For how many days events can be pushed again though they were applied: after a cluster was lost, for instance. 0: not at all."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = var.replay_days >= 0 && var.replay_days <= 31
    error_message = "replay_days ${var.replay_days} must be from 0 to 31."
  }
}

variable "publishers" {
  description = "Who may publish to the topic of events: members by any label."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "buriers" {
  description = "Who may publish to the topic of dead letters: members by any label."
  type        = map(string)
  default     = {}
  nullable    = false
}
