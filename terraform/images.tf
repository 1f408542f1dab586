# The images of the functions, one for each zip: every service of a function runs the same one.

resource "google_artifact_registry_repository" "images" {
  location      = var.region
  repository_id = "affinity"
  description   = "Images of the functions."
  format        = "DOCKER"

  # An earlier image needs no build to be deployed again. Cloud Run keeps a copy of those that serve.
  cleanup_policies {
    id     = "old"
    action = "DELETE"
    condition {
      older_than = "2592000s" # 30 days
    }
  }
  cleanup_policies {
    id     = "recent"
    action = "KEEP"
    most_recent_versions {
      keep_count = 10
    }
  }

  depends_on = [terraform_data.project]
}

module "image" {
  source   = "./modules/image"
  for_each = local.functions

  name        = each.key
  region      = var.region
  entry_point = each.value.entryPoint
  runtime     = var.runtime

  bucket                = google_storage_bucket.source.name
  source_zip            = var.source_dir == null ? null : "${var.source_dir}/${each.key}.zip"
  repository            = "${var.region}-docker.pkg.dev/${var.project_id}/${google_artifact_registry_repository.images.repository_id}"
  build_service_account = google_service_account.build.id

  depends_on = [google_project_iam_member.build, google_storage_bucket_iam_member.build, google_artifact_registry_repository_iam_member.build]
}

variable "runtime" {
  description = "Google's base image of the functions, as STACK/RUNTIME. The code needs Go 1.26. Another runtime builds and deploys all functions."
  type        = string
  default     = "google-24/go126"
  nullable    = false
}
