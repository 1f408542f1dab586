# What everything else stands on: the services of the project, the bucket of the
# functions' source, and the account that builds them.

data "google_project" "this" {
  project_id = var.project_id
}

resource "google_project_service" "this" {
  for_each = toset([
    "artifactregistry.googleapis.com",
    "bigtable.googleapis.com",
    "bigtableadmin.googleapis.com",
    "certificatemanager.googleapis.com",
    "cloudbuild.googleapis.com",
    "cloudfunctions.googleapis.com",
    "cloudscheduler.googleapis.com",
    "cloudtasks.googleapis.com",
    "compute.googleapis.com",
    "firestore.googleapis.com",
    "iam.googleapis.com",
    "iamcredentials.googleapis.com",
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "pubsub.googleapis.com",
    "run.googleapis.com",
    "storage.googleapis.com",
  ])

  service = each.key

  # Others in the project may use it too.
  disable_on_destroy = false
}

resource "google_storage_bucket" "source" {
  name                        = "${var.project_id}-affinity-source"
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = true # it holds nothing that cannot be packaged again

  # Sources that were replaced stay for a while, to be looked at.
  versioning {
    enabled = true
  }
  lifecycle_rule {
    action {
      type = "Delete"
    }
    condition {
      days_since_noncurrent_time = 30
    }
  }

  depends_on = [google_project_service.this]
}

resource "google_service_account" "build" {
  account_id   = "fn-build"
  display_name = "Cloud Build building functions"

  depends_on = [google_project_service.this]
}

# What Google names for building functions under an account of one's own. The
# project's storage is read because a build takes its source from a bucket of
# Google's making, into which ours was copied.
resource "google_project_iam_member" "build" {
  for_each = toset(["roles/logging.logWriter", "roles/artifactregistry.writer", "roles/storage.objectViewer"])

  project = var.project_id
  role    = each.key
  member  = google_service_account.build.member
}
