locals {
  account = var.service_account == null ? google_service_account.this[0].email : var.service_account.email

  # Go's soft limit of memory: nine tenths of the instance. Near it the garbage
  # collector works harder, and requests may hold four ninths of it at a time.
  memory_mib       = try(tonumber(trimsuffix(var.memory, "Gi")) * 1024, tonumber(trimsuffix(var.memory, "Mi")), 0)
  memory_limit_mib = floor(local.memory_mib * 9 / 10)

  # The object's name contains the hash of the zip, so Terraform deploys the function
  # exactly when its source has changed.
  object = "${var.source_prefix}${var.name}-${var.source_zip == null ? "unpackaged" : try(filesha256(var.source_zip), "missing")}.zip"
}

# A function in a serving region runs as that of the same name in the deployment's region.
resource "google_service_account" "this" {
  count = var.service_account == null ? 1 : 0

  account_id   = "fn-${var.name}"
  display_name = "Function ${var.name}"
}

moved {
  from = google_service_account.this
  to   = google_service_account.this[0]
}

resource "google_storage_bucket_object" "source" {
  name    = local.object
  bucket  = var.bucket
  source  = var.source_zip
  content = var.source_zip == null ? "unpackaged" : null

  lifecycle {
    # Terraform deletes the old source after the function has the new one.
    create_before_destroy = true

    precondition {
      condition     = var.source_zip == null || try(fileexists(var.source_zip), false)
      error_message = "Function ${var.name}: the file ${coalesce(var.source_zip, "zip")} does not exist. Run `go run ./scripts/package` in the repository first."
    }
  }
}

resource "google_cloudfunctions2_function" "this" {
  name        = var.name
  location    = var.region
  description = var.description

  build_config {
    runtime         = var.runtime
    entry_point     = var.entry_point
    service_account = var.build_service_account

    # go build reads the first: the README says why. The second is toolchain of go.mod.
    environment_variables = { GOFLAGS = "-tags=disable_grpc_modules", GOOGLE_RUNTIME_VERSION = "1.26.10" }

    # Google updates the base image without a build.
    automatic_update_policy {}

    source {
      storage_source {
        bucket = google_storage_bucket_object.source.bucket
        object = google_storage_bucket_object.source.name
      }
    }
  }

  service_config {
    available_cpu                    = var.cpu
    available_memory                 = var.memory
    timeout_seconds                  = var.timeout_seconds
    min_instance_count               = var.min_instances
    max_instance_count               = var.max_instances
    max_instance_request_concurrency = var.concurrency
    ingress_settings                 = var.ingress
    all_traffic_on_latest_revision   = true
    service_account_email            = local.account
    environment_variables = merge(
      { for v in var.variables : v => lookup(var.environment, v, "") },
      var.more_environment,
      { GOMEMLIMIT = "${local.memory_limit_mib}MiB" },
    )

    dynamic "secret_environment_variables" {
      for_each = var.secrets

      content {
        key        = secret_environment_variables.key
        project_id = var.project_id
        secret     = secret_environment_variables.value
        version    = "latest"
      }
    }
  }

  # A revision does not start before its account may read its secrets.
  depends_on = [google_secret_manager_secret_iam_member.reader]

  lifecycle {
    precondition {
      condition     = length(setsubtract(var.variables, keys(var.environment))) == 0
      error_message = "Function ${var.name} reads variables that the deployment does not set: ${join(", ", setsubtract(var.variables, keys(var.environment)))}."
    }
  }
}

resource "google_secret_manager_secret_iam_member" "reader" {
  for_each = var.service_account == null ? var.secrets : {}

  project   = var.project_id
  secret_id = each.value
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.this[0].member
}

# A function of the second generation is a Cloud Run service of the same name. The
# service checks run.invoker and ignores the invoker role of Cloud Functions.
resource "google_cloud_run_service_iam_member" "invoker" {
  for_each = var.invokers

  location = google_cloudfunctions2_function.this.location
  service  = google_cloudfunctions2_function.this.name
  role     = "roles/run.invoker"
  member   = each.value
}
