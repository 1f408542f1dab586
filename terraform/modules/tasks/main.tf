resource "google_service_account" "tasks" {
  account_id   = "call-tasks"
  display_name = "Cloud Tasks calling worker"
}

resource "google_cloud_tasks_queue" "worker" {
  name          = var.queue
  location      = var.region
  desired_state = var.paused ? "PAUSED" : "RUNNING"

  # Overrides the address and the account of every task.
  http_target {
    http_method = "POST"

    uri_override {
      scheme                    = "HTTPS"
      host                      = trimprefix(var.worker_uri, "https://")
      uri_override_enforce_mode = "ALWAYS"
    }

    oidc_token {
      service_account_email = google_service_account.tasks.email
      audience              = var.worker_uri
    }
  }

  rate_limits {
    max_concurrent_dispatches = var.max_concurrent
    max_dispatches_per_second = var.max_per_second
  }

  retry_config {
    max_attempts  = var.max_attempts
    min_backoff   = "10s" # the worker's 8 attempts last a quarter of an hour
    max_backoff   = "300s"
    max_doublings = 9
  }

  # Errors are in the worker's own log.
  stackdriver_logging_config {
    sampling_ratio = 0.1
  }
}

resource "google_cloud_tasks_queue_iam_member" "enqueuer" {
  for_each = var.enqueuers

  name     = google_cloud_tasks_queue.worker.name
  location = google_cloud_tasks_queue.worker.location
  role     = "roles/cloudtasks.enqueuer"
  member   = each.value
}

# A member may enqueue a task with an account only if it may act as that account.
resource "google_service_account_iam_member" "enqueuer" {
  for_each = var.enqueuers

  service_account_id = google_service_account.tasks.name
  role               = "roles/iam.serviceAccountUser"
  member             = each.value
}
