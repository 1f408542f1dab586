# What everything else needs: the project's services, the bucket of the functions'
# source, and the account that builds the functions.

data "google_project" "this" {
  project_id = var.project_id
}

resource "google_project_service" "this" {
  for_each = toset(concat(var.billing_account == null ? [] : ["billingbudgets.googleapis.com"], var.warehouse ? ["bigquery.googleapis.com", "bigquerydatatransfer.googleapis.com"] : [], [
    "artifactregistry.googleapis.com",
    "bigtable.googleapis.com",
    "bigtableadmin.googleapis.com",
    "certificatemanager.googleapis.com",
    "cloudbuild.googleapis.com",
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
  ]))

  project = var.project_id
  service = each.key

  # Other software in the project may use the service too.
  disable_on_destroy = false

  # These resources record the project of the state: they keep the project that
  # they were created in, whatever project_id says now. terraform_data.project
  # compares the two.
  lifecycle {
    ignore_changes = [project]
  }
}

# One state belongs to one project. With another project's variables, the plan
# would move, replace and destroy what the state holds. This check stops that plan;
# every other resource depends on it, so a plan with -target is stopped too.
resource "terraform_data" "project" {
  input = var.project_id

  lifecycle {
    precondition {
      condition     = alltrue([for s in values(google_project_service.this) : s.project == var.project_id])
      error_message = "This state belongs to project ${join(", ", setsubtract([for s in values(google_project_service.this) : s.project], [var.project_id]))}, but project_id is ${var.project_id}. Nothing was changed. Use the state of ${var.project_id}: run `terraform init -reconfigure -backend-config=environments/ENV.backend` with the backend file of that environment, then plan again with its tfvars file. See \"One state for each project\" in functions/docs/operate/deploy.md."
    }
  }
}

resource "google_storage_bucket" "source" {
  name                        = "${var.project_id}-affinity-source"
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = true # scripts/package can make its objects again

  # Replaced sources stay for 30 days, for inspection.
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

  depends_on = [terraform_data.project]
}

resource "google_service_account" "build" {
  account_id   = "fn-build"
  display_name = "Cloud Build building functions"

  depends_on = [terraform_data.project]
}

# What a build needs: it reads the source, writes the image and logs, and reaches no data.
resource "google_project_iam_member" "build" {
  project = var.project_id
  role    = "roles/logging.logWriter"
  member  = google_service_account.build.member
}

resource "google_storage_bucket_iam_member" "build" {
  bucket = google_storage_bucket.source.name
  role   = "roles/storage.objectViewer"
  member = google_service_account.build.member
}

resource "google_artifact_registry_repository_iam_member" "build" {
  location   = google_artifact_registry_repository.images.location
  repository = google_artifact_registry_repository.images.name
  role       = "roles/artifactregistry.writer"
  member     = google_service_account.build.member
}
