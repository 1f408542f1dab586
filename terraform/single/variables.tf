variable "project_id" {
  description = "ID of the Google Cloud project."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project_id))
    error_message = "project_id \"${var.project_id}\" must be 6 to 30 lower-case letters, digits and hyphens: the id, not the name or the number."
  }
}

variable "name" {
  description = "Name of the machine, and the beginning of the names of what belongs to it."
  type        = string
  default     = "affinity"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,40}[a-z0-9]$", var.name))
    error_message = "name \"${var.name}\" must be 2 to 42 lower-case letters, digits and hyphens and begin with a letter."
  }
}

variable "zone" {
  description = "Zone of the machine and its disk. Do not change it later: Terraform would replace the disk, which it refuses."
  type        = string
  default     = "europe-west1-b"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+-[a-z]$", var.zone))
    error_message = "zone \"${var.zone}\" must be a zone such as europe-west1-b, not a region."
  }
}

variable "machine_type" {
  description = "Type of the machine, for amd64. Another one replaces the machine: the engine is away for some minutes."
  type        = string
  default     = "e2-small"
  nullable    = false
}

variable "disk_gb" {
  description = "Size of the disk of data in GB. It can grow: the machine grows its file system when it starts."
  type        = number
  default     = 20
  nullable    = false

  validation {
    condition     = var.disk_gb >= 10 && var.disk_gb <= 65536 && floor(var.disk_gb) == var.disk_gb
    error_message = "disk_gb ${var.disk_gb} must be a whole number from 10 to 65,536."
  }
}

variable "snapshot_days" {
  description = "For how many days the daily snapshots of the disk are kept."
  type        = number
  default     = 14
  nullable    = false

  validation {
    condition     = var.snapshot_days >= 1 && var.snapshot_days <= 365 && floor(var.snapshot_days) == var.snapshot_days
    error_message = "snapshot_days ${var.snapshot_days} must be a whole number from 1 to 365."
  }
}

variable "hosts" {
  description = "Hosts by which clients reach the engine, each with the one app that is reached by it, or each with \"\" for all apps. The engine gets a certificate for each from Let's Encrypt."
  type        = map(string)
  nullable    = false

  validation {
    condition     = length(var.hosts) > 0 && alltrue([for host, _ in var.hosts : can(regex("^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?[.])+[a-z]{2,63}$", host))])
    error_message = "hosts must name at least one host, such as shop.example.com, in lower-case letters: ${join(", ", keys(var.hosts))}."
  }

  validation {
    condition     = alltrue([for app in values(var.hosts) : can(regex("^[A-Za-z0-9_-]{0,64}$", app))])
    error_message = "The apps of hosts must be ids of apps, of letters, digits, - and _: ${join(", ", values(var.hosts))}."
  }

  validation {
    condition     = !contains(values(var.hosts), "") || alltrue([for app in values(var.hosts) : app == ""])
    error_message = "Either each of hosts has an app, or none has: an engine with a host of one app refuses all hosts without one."
  }
}

variable "dns_zone" {
  description = "Name of the Cloud DNS zone of the hosts, in the same project. Null: you create the records yourself."
  type        = string
  default     = null
}

variable "package_url" {
  description = "URL of the engine's Debian package, which the machine downloads when it is made. Another one replaces the machine."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^https://[^ '\"]+[.]deb$", var.package_url))
    error_message = "package_url \"${var.package_url}\" must begin with https:// and end with .deb."
  }
}

variable "package_sha256" {
  description = "SHA-256 of that package, in hexadecimal, from the SHA256SUMS of the release."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[0-9a-f]{64}$", var.package_sha256))
    error_message = "package_sha256 \"${var.package_sha256}\" must have 64 lower-case hexadecimal digits."
  }
}
