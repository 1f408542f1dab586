variable "project_id" {
  description = "Project of the dataset."
  type        = string
  nullable    = false
}

variable "project_number" {
  description = "Number of the project. The names of Google's own accounts in the project contain it."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[0-9]+$", var.project_number))
    error_message = "project_number \"${var.project_number}\" must be the project's number, in digits, not its id."
  }
}

variable "location" {
  description = "Region of the dataset, and the only one in which Pub/Sub may store the messages if storage_regions says so."
  type        = string
  nullable    = false
}

variable "topic" {
  description = "Topic of the rows of events; that of deletions has the ending -deletions."
  type        = string
  nullable    = false
}

variable "ending" {
  description = "Ending of the names of the topics and subscriptions, such as .us: a dot and the name of the data region. The dataset has it too, with underscores."
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

variable "days" {
  description = "Number of days, by the time of the event, for which rows are kept. 0: for ever."
  type        = number
  nullable    = false

  validation {
    condition     = var.days >= 0 && floor(var.days) == var.days
    error_message = "days ${var.days} must be a whole number, 0 or more."
  }
}

variable "deletion_protection" {
  description = "Whether Terraform refuses to delete the tables."
  type        = bool
  default     = true
  nullable    = false
}

variable "publishers" {
  description = "Members that may publish rows, by any label."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "service_account" {
  description = "An account as which the deletion runs. Null: one is created."
  type        = object({ email = string })
  default     = null
}

variable "grant_seconds" {
  description = "Seconds that an apply waits after grants to Pub/Sub's own account, before what needs them. Tests wait for none."
  type        = number
  default     = 60
}
