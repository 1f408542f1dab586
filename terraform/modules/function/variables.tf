variable "name" {
  description = "Name of the function's Cloud Run service: \"ingest\", or \"ingest-acme\" for a dedicated customer's. Its service account is fn-<name>."
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

variable "function" {
  description = "The function that the service runs, an output of the module image."
  type = object({
    image           = string
    source          = string
    entry_point     = string
    runtime         = string
    environment     = map(string)
    service_account = string
  })
  nullable = false
}

variable "service_account" {
  description = "Account that the function runs as. Null: one of its own."
  type        = object({ email = string, member = string })
  default     = null
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
  description = "Environment variables that hold a secret: the id of the secret in Secret Manager, by variable. The function's account may read these secrets."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "secret_versions" {
  description = "Versions of secrets, by variable. Of a secret without one a new instance gets the newest."
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
    condition     = contains(["1", "2", "4", "6", "8"], var.cpu) || try(tonumber(var.cpu) >= 0.08 && tonumber(var.cpu) < 1, false)
    error_message = "Function ${var.name}: cpu \"${var.cpu}\" must be 1, 2, 4, 6 or 8, or a number from 0.08 to less than 1."
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

variable "billing" {
  description = "What Cloud Run bills: requests (an instance while it serves a request, and a fee for each), or instances (every instance while it exists, and no fee)."
  type        = string
  default     = "requests"
  nullable    = false

  validation {
    condition     = contains(["requests", "instances"], var.billing)
    error_message = "Function ${var.name}: billing \"${var.billing}\" must be requests or instances."
  }

  validation {
    condition     = var.billing != "instances" || try(tonumber(var.cpu) >= 1, false) && local.memory_mib >= 512
    error_message = "Function ${var.name}: with billing by instances, Cloud Run wants at least 1 CPU and 512Mi, not ${var.cpu} and ${var.memory}."
  }
}

variable "readiness" {
  description = "Whether Cloud Run asks instances all the time whether they are ready, so that the load balancer leaves a region out whose instances are not. It needs a warm instance in each region, and Cloud Run bills the CPU of each answer."
  type        = bool
  default     = false
  nullable    = false
}

variable "ingress" {
  description = "Sources of traffic that the function accepts. INGRESS_TRAFFIC_INTERNAL_ONLY: Pub/Sub, Cloud Tasks and Cloud Scheduler of the project. INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER: the load balancer too. No value admits clients past the load balancer."
  type        = string
  default     = "INGRESS_TRAFFIC_INTERNAL_ONLY"
  nullable    = false

  validation {
    condition     = contains(["INGRESS_TRAFFIC_INTERNAL_ONLY", "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"], var.ingress)
    error_message = "Function ${var.name}: ingress \"${var.ingress}\" must be INGRESS_TRAFFIC_INTERNAL_ONLY or INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER."
  }
}

variable "public_access" {
  description = "How everyone whom ingress admits may call the function: no_invoker_check (Cloud Run does not check callers), or all_users (allUsers have the role of a caller). Null: only invokers may."
  type        = string
  default     = null

  validation {
    condition     = var.public_access == null || contains(["no_invoker_check", "all_users"], coalesce(var.public_access, "-"))
    error_message = "Function ${var.name}: public_access \"${coalesce(var.public_access, "null")}\" must be no_invoker_check or all_users."
  }

  validation {
    condition     = var.public_access == null || var.ingress == "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"
    error_message = "Function ${var.name}: everyone may not call a private function."
  }
}

variable "invokers" {
  description = "Members that may call the function, by any label, such as { push = \"serviceAccount:...\" }."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = length(setintersection(values(var.invokers), ["allUsers", "allAuthenticatedUsers"])) == 0
    error_message = "Function ${var.name}: public_access says whether everyone may call it, not invokers."
  }
}

variable "traffic" {
  description = "Percentage of the requests that the newest revision gets, and the earlier revision that gets the others."
  type = object({
    latest   = number
    revision = optional(string)
  })
  default  = { latest = 100 }
  nullable = false

  validation {
    condition     = var.traffic.latest >= 0 && var.traffic.latest <= 100 && floor(var.traffic.latest) == var.traffic.latest
    error_message = "Function ${var.name}: the newest revision gets a whole number of percent from 0 to 100, not ${var.traffic.latest}."
  }

  validation {
    condition     = var.traffic.latest == 100 || startswith(coalesce(var.traffic.revision, "-"), "${var.name}-")
    error_message = "Function ${var.name}: the newest revision gets ${var.traffic.latest} % of the requests, so revision must name an earlier one of this service (`gcloud run revisions list --service ${var.name}`), not ${coalesce(var.traffic.revision, "null")}."
  }
}
