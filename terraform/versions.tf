terraform {
  required_version = ">= 1.9"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 8.0, < 9"
    }
  }
}

provider "google" {
  project = var.project_id
  region  = var.region

  # The Budgets API refuses a person's credentials without a project that its calls
  # count against.
  user_project_override = var.billing_account != null
  billing_project       = var.billing_account == null ? null : var.project_id

  default_labels = {
    app         = "affinity"
    environment = var.environment
  }
}
