variable "name" {
  description = "What the function is called, and its Cloud Run service: \"ingest\", or \"ingest-acme\" for a customer's own. Its service account is fn-<name>."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,25}[a-z0-9])?$", var.name))
    error_message = "name \"${var.name}\" must be 1 to 27 lower-case letters, digits and hyphens, begin with a letter and not end with a hyphen."
  }
}

variable "description" {
  description = "What the function does, in a few words."
  type        = string
  default     = null
}

variable "region" {
  description = "Where the function runs."
  type        = string
  nullable    = false
}

variable "entry_point" {
  description = "The name under which the code registers the function."
  type        = string
  nullable    = false
}

variable "runtime" {
  description = "The language runtime. The client libraries need Go 1.26."
  type        = string
  default     = "go126"
  nullable    = false

  validation {
    condition     = can(regex("^go1(2[6-9]|[3-9][0-9])$", var.runtime))
    error_message = "runtime \"${var.runtime}\" must be go126 or newer."
  }
}

variable "bucket" {
  description = "The bucket that the source is put into."
  type        = string
  nullable    = false
}

variable "source_zip" {
  description = "The packaged source, such as ../dist/ingest.zip. Null plans without it, to see what would be made; such a plan cannot be applied."
  type        = string
  default     = null
}

variable "build_service_account" {
  description = "The account that Cloud Build builds as: projects/P/serviceAccounts/EMAIL."
  type        = string
  nullable    = false
}

variable "variables" {
  description = "The environment variables that the code reads."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "environment" {
  description = "What the deployment knows, by the name of the variable. The function gets of it what it reads, and nothing else."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "min_instances" {
  description = "Instances that are kept warm. 0 costs nothing while nobody calls."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = var.min_instances >= 0 && floor(var.min_instances) == var.min_instances && var.min_instances <= var.max_instances
    error_message = "Function ${var.name}: min_instances ${var.min_instances} must be a whole number from 0 to max_instances, ${var.max_instances}."
  }
}

variable "max_instances" {
  description = "The most instances that may run at once."
  type        = number
  default     = 10
  nullable    = false

  validation {
    condition     = var.max_instances >= 1 && floor(var.max_instances) == var.max_instances && var.max_instances <= 1000
    error_message = "Function ${var.name}: max_instances ${var.max_instances} must be a whole number from 1 to 1000."
  }
}

variable "concurrency" {
  description = "Requests that an instance answers at once."
  type        = number
  default     = 80
  nullable    = false

  validation {
    condition     = var.concurrency >= 1 && floor(var.concurrency) == var.concurrency && var.concurrency <= 1000
    error_message = "Function ${var.name}: concurrency ${var.concurrency} must be a whole number from 1 to 1000."
  }

  validation {
    condition     = var.concurrency == 1 || try(tonumber(var.cpu) >= 1, false)
    error_message = "Function ${var.name}: with less than one CPU an instance takes one request at a time, not ${var.concurrency}."
  }
}

variable "cpu" {
  description = "CPUs of an instance."
  type        = string
  default     = "1"
  nullable    = false

  validation {
    condition     = can(tonumber(var.cpu)) && try(tonumber(var.cpu) > 0 && tonumber(var.cpu) <= 8, false)
    error_message = "Function ${var.name}: cpu \"${var.cpu}\" must be a number above 0, at most 8."
  }
}

variable "memory" {
  description = "Memory of an instance."
  type        = string
  default     = "512Mi"
  nullable    = false

  validation {
    condition     = can(regex("^[1-9][0-9]*(Mi|Gi)$", var.memory))
    error_message = "Function ${var.name}: memory \"${var.memory}\" must be like 512Mi or 2Gi."
  }
}

variable "timeout_seconds" {
  description = "How long a request may take."
  type        = number
  default     = 60
  nullable    = false

  validation {
    condition     = var.timeout_seconds >= 1 && var.timeout_seconds <= 3600
    error_message = "Function ${var.name}: timeout_seconds ${var.timeout_seconds} must be from 1 to 3600."
  }
}

variable "ingress" {
  description = "From where the function can be reached: ALLOW_INTERNAL_AND_GCLB behind the load balancer, ALLOW_INTERNAL_ONLY by Pub/Sub, Cloud Tasks and Cloud Scheduler of the project. Nothing is reached past the load balancer."
  type        = string
  default     = "ALLOW_INTERNAL_ONLY"
  nullable    = false

  validation {
    condition     = contains(["ALLOW_INTERNAL_ONLY", "ALLOW_INTERNAL_AND_GCLB"], var.ingress)
    error_message = "Function ${var.name}: ingress \"${var.ingress}\" must be ALLOW_INTERNAL_ONLY or ALLOW_INTERNAL_AND_GCLB."
  }
}

variable "invokers" {
  description = "Who may call the function: members by any label, such as { push = \"serviceAccount:...\" }. Nobody else may."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = !contains(values(var.invokers), "allUsers") || var.ingress == "ALLOW_INTERNAL_AND_GCLB"
    error_message = "Function ${var.name}: a private function may not be called by allUsers."
  }
}
