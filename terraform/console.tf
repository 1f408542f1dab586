# The console has a host of its own, which serves no API: a page of the API's hosts cannot
# act with a session's cookie, and a page of the console's host cannot be made by a request to
# the API. Without a host it is not deployed.
variable "console_host" {
  description = "Host of the console, such as console.example.com, which serves nothing else. Null: the console is not deployed."
  type        = string
  default     = null

  validation {
    condition     = var.console_host == null || can(regex(local.host, var.console_host))
    error_message = "console_host \"${coalesce(var.console_host, "null")}\" must be a domain name in lower case, such as console.example.com."
  }

  validation {
    condition     = var.console_host == null || !contains(concat(var.default_host[*], [for c in values(var.customers) : c.host]), coalesce(var.console_host, "-"))
    error_message = "console_host \"${coalesce(var.console_host, "null")}\" is a host of the API. The console needs one of its own."
  }

  validation {
    condition     = var.console_host == null || var.default_host != null || length(var.customers) > 0
    error_message = "console_host is set, but no host serves the API: set default_host, or add a customer."
  }
}

variable "console_secret" {
  description = "Id of the secret of Secret Manager that encrypts the console's sessions: 32 random bytes in base64, of `openssl rand -base64 32`. Make it before console_host is set."
  type        = string
  default     = "affinity-console"
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{1,255}$", var.console_secret))
    error_message = "console_secret must be the id of a secret of the project, not its content: letters, digits, underscores and hyphens."
  }
}
