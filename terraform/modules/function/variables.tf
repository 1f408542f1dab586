variable "name" {
  description = "Name of the function and of its Cloud Run service: \"ingest\", or \"ingest-acme\" for a dedicated customer's. Its service account is fn-<name>."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,25}[a-z0-9])?$", var.name))
    error_message = "name \"${var.name}\" must be 1 to 27 lower-case letters, digits and hyphens, begin with a letter and not end with a hyphen."
  }
}

variable "description" {
  description = "Description of the function, shown in the console."
  type        = string
  default     = null
}

variable "region" {
  description = "Region of the function."
  type        = string
  nullable    = false
}

variable "entry_point" {
  description = "Name under which the code registers the function."
  type        = string
  nullable    = false
}

variable "runtime" {
  description = "Runtime of the function. The code needs Go 1.26."
  type        = string
  default     = "go126"
  nullable    = false

  validation {
    condition     = can(regex("^go1(2[6-9]|[3-9][0-9])$", var.runtime))
    error_message = "runtime \"${var.runtime}\" must be go126 or newer."
  }
}

variable "bucket" {
  description = "Bucket for the source."
  type        = string
  nullable    = false
}

variable "source_zip" {
  description = "Packaged source, such as ../dist/ingest.zip. Null: plan without it, to see what would be created. Such a plan cannot be applied."
  type        = string
  default     = null
}

variable "source_prefix" {
  description = "What the names of the source's objects begin with. Two functions of one name need different ones."
  type        = string
  default     = ""
  nullable    = false
}

variable "service_account" {
  description = "Account that the function runs as. Null: one of its own."
  type        = object({ email = string, member = string })
  default     = null
}

variable "build_service_account" {
  description = "Account that Cloud Build builds the function as: projects/PROJECT/serviceAccounts/EMAIL."
  type        = string
  nullable    = false
}

variable "variables" {
  description = "Environment variables that the code reads."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "environment" {
  description = "All environment variables of the deployment. The function gets only those that `variables` lists."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "more_environment" {
  description = "Environment variables that libraries read, beside `variables`. The function gets all of them."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "secrets" {
  description = "Environment variables with the newest version of a secret: the id of the secret in Secret Manager, by variable. The function's account may read these secrets."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "project_id" {
  description = "Project of the secrets. Needed with `secrets`."
  type        = string
  default     = null
}

variable "min_instances" {
  description = "Number of instances that stay warm. With 0 the function costs nothing while it has no calls."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = var.min_instances >= 0 && floor(var.min_instances) == var.min_instances && var.min_instances <= var.max_instances
    error_message = "Function ${var.name}: min_instances ${var.min_instances} must be a whole number from 0 to max_instances, ${var.max_instances}."
  }
}

variable "max_instances" {
  description = "Maximum number of instances."
  type        = number
  default     = 10
  nullable    = false

  validation {
    condition     = var.max_instances >= 1 && floor(var.max_instances) == var.max_instances && var.max_instances <= 1000
    error_message = "Function ${var.name}: max_instances ${var.max_instances} must be a whole number from 1 to 1000."
  }
}

variable "concurrency" {
  description = "Number of requests that an instance serves at a time."
  type        = number
  default     = 80
  nullable    = false

  validation {
    condition     = var.concurrency >= 1 && floor(var.concurrency) == var.concurrency && var.concurrency <= 1000
    error_message = "Function ${var.name}: concurrency ${var.concurrency} must be a whole number from 1 to 1000."
  }

  validation {
    condition     = var.concurrency == 1 || try(tonumber(var.cpu) >= 1, false)
    error_message = "Function ${var.name}: with less than one CPU, concurrency must be 1, not ${var.concurrency}."
  }
}

variable "cpu" {
  description = "Number of CPUs of an instance."
  type        = string
  default     = "1"
  nullable    = false

  validation {
    condition     = can(tonumber(var.cpu)) && try(tonumber(var.cpu) > 0 && tonumber(var.cpu) <= 8, false)
    error_message = "Function ${var.name}: cpu \"${var.cpu}\" must be a number above 0 and at most 8."
  }
}

variable "memory" {
  description = "Memory of an instance, such as 512Mi or 2Gi."
  type        = string
  default     = "512Mi"
  nullable    = false

  validation {
    condition     = can(regex("^[1-9][0-9]*(Mi|Gi)$", var.memory))
    error_message = "Function ${var.name}: memory \"${var.memory}\" must be a whole number of Mi or Gi, such as 512Mi or 2Gi."
  }
}

variable "timeout_seconds" {
  description = "Maximum duration of a request, in seconds."
  type        = number
  default     = 60
  nullable    = false

  validation {
    condition     = var.timeout_seconds >= 1 && var.timeout_seconds <= 3600
    error_message = "Function ${var.name}: timeout_seconds ${var.timeout_seconds} must be from 1 to 3600."
  }
}

variable "ingress" {
  description = "Sources of traffic that the function accepts. ALLOW_INTERNAL_ONLY: Pub/Sub, Cloud Tasks and Cloud Scheduler of the project. ALLOW_INTERNAL_AND_GCLB: the load balancer too. No value admits clients past the load balancer."
  type        = string
  default     = "ALLOW_INTERNAL_ONLY"
  nullable    = false

  validation {
    condition     = contains(["ALLOW_INTERNAL_ONLY", "ALLOW_INTERNAL_AND_GCLB"], var.ingress)
    error_message = "Function ${var.name}: ingress \"${var.ingress}\" must be ALLOW_INTERNAL_ONLY or ALLOW_INTERNAL_AND_GCLB."
  }
}

variable "invokers" {
  description = "Members that may call the function, by any label, such as { push = \"serviceAccount:...\" }."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = !contains(values(var.invokers), "allUsers") || var.ingress == "ALLOW_INTERNAL_AND_GCLB"
    error_message = "Function ${var.name}: allUsers may not call a private function."
  }
}
