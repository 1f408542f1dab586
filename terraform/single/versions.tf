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
  project        = var.project_id
  zone           = var.zone
  region         = local.region
  default_labels = { app = "affinity" }
}
