resource "google_service_account" "scheduler" {
  count = var.nightly == null ? 0 : 1

  account_id   = "call-nightly"
  display_name = "Cloud Scheduler calling worker"
}

locals {
  nightly = var.nightly == null ? {} : merge(
    { nightly = {
      what      = "every app without a schedule of its own"
      schedule  = try(var.nightly.schedule, "")
      time_zone = try(var.nightly.time_zone, "")
      body      = jsonencode({ spread = try(var.nightly.spread, ""), except = sort([for s in values(var.schedules) : s.app_id]) })
    } },
    { for name, s in var.schedules : "nightly-${name}" => {
      what      = "the customer ${name}"
      schedule  = s.schedule
      time_zone = s.time_zone
      body      = jsonencode({ app = s.app_id })
    } },
    { for name, s in var.full_schedules : "full-${name}" => {
      what      = "every profile of the customer ${name}"
      schedule  = s.schedule
      time_zone = s.time_zone
      body      = jsonencode({ app = s.app_id, full = true })
    } },
  )
}

# The nightly round. Starting it twice does no harm, so Scheduler may retry it. The
# worker enqueues one task for each app: 5,000 in a few seconds.
resource "google_cloud_scheduler_job" "nightly" {
  for_each = local.nightly

  name             = "affinity-${each.key}"
  description      = "Recompute and audit of ${each.value.what}."
  region           = var.region
  schedule         = each.value.schedule
  time_zone        = each.value.time_zone
  attempt_deadline = "180s"
  paused           = var.paused

  retry_config {
    retry_count          = 5
    min_backoff_duration = "30s"
    max_backoff_duration = "600s"
  }

  http_target {
    uri         = "${var.worker_uri}/nightly"
    http_method = "POST"
    headers     = { "Content-Type" = "application/json" }
    body        = base64encode(each.value.body)

    oidc_token {
      service_account_email = google_service_account.scheduler[0].email
      audience              = var.worker_uri
    }
  }
}

moved {
  from = google_service_account.scheduler
  to   = google_service_account.scheduler[0]
}
