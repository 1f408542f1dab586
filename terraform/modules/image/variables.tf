variable "name" {
  description = "Name of the function in functions.json: ingest. Services of other names may run its image too."
  type        = string
  nullable    = false
}

variable "region" {
  description = "Region of the build, and of the base image that it uses."
  type        = string
  nullable    = false
}

variable "entry_point" {
  description = "Name under which the code registers the function."
  type        = string
  nullable    = false
}

variable "runtime" {
  description = "Google's base image of the function, as STACK/RUNTIME. The code needs Go 1.26."
  type        = string
  default     = "google-24/go126"
  nullable    = false

  validation {
    condition     = can(regex("^google-[0-9]+(-full)?/go1(2[6-9]|[3-9][0-9])$", var.runtime))
    error_message = "runtime \"${var.runtime}\" must be a stack and a runtime of Google, go126 or newer, such as google-24/go126."
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

variable "repository" {
  description = "Repository of Artifact Registry for the image: REGION-docker.pkg.dev/PROJECT/REPOSITORY."
  type        = string
  nullable    = false
}

variable "build_service_account" {
  description = "Account that Cloud Build builds the image as: projects/PROJECT/serviceAccounts/EMAIL."
  type        = string
  nullable    = false
}
