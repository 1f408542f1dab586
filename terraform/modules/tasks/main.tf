resource "google_service_account" "tasks" {
  count = var.tasks_account == null ? 1 : 0

  account_id   = "call-tasks"
  display_name = "Cloud Tasks calling worker"
}

locals {
  # The account as which Cloud Tasks calls worker, the same in all regions.
  tasks = var.tasks_account == null ? google_service_account.tasks[0].email : var.tasks_account.email

  # The workers and the endings of their queues' names and keys.
  workers = merge(
    { "" = { uri = var.worker_uri, max_concurrent = var.max_concurrent, protected = var.deletion_protection } },
    { for customer, d in var.dedicated : "-${customer}" => { uri = d.worker_uri, max_concurrent = d.max_concurrent, protected = var.deletion_protection && !d.draining } },
  )

  # How many tasks each queue of a worker dispatches at once. Together they are as many as
  # its instances accept: a third are refreshes, at least one a queue, and a quarter of the
  # others are purges, at least one.
  refreshes = { for ending, w in local.workers : ending => max(1, floor(w.max_concurrent / 3 / length(var.refresh_queues))) }
  others    = { for ending, w in local.workers : ending => w.max_concurrent - local.refreshes[ending] * length(var.refresh_queues) }
  purges    = { for ending, n in local.others : ending => max(1, floor(n / 4)) }

  # Purges of deleted users and refreshes at the end of write windows have queues of their
  # own, so that no task of a job is before them. A refresh that fails is soon useless: the
  # next event or read of the user does its work.
  queues = merge([for ending, w in local.workers : merge(
    {
      "tasks${ending}"  = { name = "${var.queue}${ending}", uri = w.uri, protected = w.protected, at_once = max(1, local.others[ending] - local.purges[ending]), per_second = var.max_per_second, attempts = var.max_attempts }
      "purges${ending}" = { name = "${var.purge_queue}${ending}", uri = w.uri, protected = w.protected, at_once = local.purges[ending], per_second = var.max_per_second, attempts = var.max_attempts }
    },
    { for name in var.refresh_queues : "${name}${ending}" => { name = "${name}${ending}", uri = w.uri, protected = w.protected, at_once = local.refreshes[ending], per_second = 500, attempts = 5 } },
  )]...)

  # The keys of the queues that serve all apps.
  common = concat(["tasks", "purges"], var.refresh_queues)
}

resource "google_cloud_tasks_queue" "worker" {
  for_each = local.queues

  name          = each.value.name
  location      = var.region
  desired_state = var.paused ? "PAUSED" : "RUNNING"

  # Tasks may wait, and the name stays reserved for a week.
  deletion_policy = each.value.protected ? "PREVENT" : "DELETE"

  # Overrides the address and the account of every task.
  http_target {
    http_method = "POST"

    uri_override {
      scheme                    = "HTTPS"
      host                      = trimprefix(each.value.uri, "https://")
      uri_override_enforce_mode = "ALWAYS"
    }

    oidc_token {
      service_account_email = local.tasks
      audience              = each.value.uri
    }
  }

  rate_limits {
    max_concurrent_dispatches = each.value.at_once
    max_dispatches_per_second = each.value.per_second
  }

  retry_config {
    max_attempts  = each.value.attempts
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

  name     = google_cloud_tasks_queue.worker["tasks"].name
  location = google_cloud_tasks_queue.worker["tasks"].location
  role     = "roles/cloudtasks.enqueuer"
  member   = each.value
}

resource "google_cloud_tasks_queue_iam_member" "purger" {
  for_each = var.enqueuers

  name     = google_cloud_tasks_queue.worker["purges"].name
  location = google_cloud_tasks_queue.worker["purges"].location
  role     = "roles/cloudtasks.enqueuer"
  member   = each.value
}

resource "google_cloud_tasks_queue_iam_member" "refresher" {
  for_each = merge([for queue in var.refresh_queues : { for label, member in var.enqueuers : "${queue}/${label}" => { queue = queue, member = member } }]...)

  name     = google_cloud_tasks_queue.worker[each.value.queue].name
  location = google_cloud_tasks_queue.worker[each.value.queue].location
  role     = "roles/cloudtasks.enqueuer"
  member   = each.value.member
}

# Who acts for a dedicated customer: their own functions, and those that serve all apps.
resource "google_cloud_tasks_queue_iam_member" "dedicated_enqueuer" {
  for_each = merge([for grant in flatten([for customer, d in var.dedicated : [
    for queue in local.common : { queue = "${queue}-${customer}", members = d.enqueuers }
    ]]) : { for label, member in grant.members : "${grant.queue}/${label}" => { queue = grant.queue, member = member } }
  ]...)

  name     = google_cloud_tasks_queue.worker[each.value.queue].name
  location = google_cloud_tasks_queue.worker[each.value.queue].location
  role     = "roles/cloudtasks.enqueuer"
  member   = each.value.member
}

# A member may enqueue a task with an account only if it may act as that account.
resource "google_service_account_iam_member" "enqueuer" {
  for_each = var.tasks_account == null ? var.enqueuers : {}

  service_account_id = google_service_account.tasks[0].name
  role               = "roles/iam.serviceAccountUser"
  member             = each.value
}

moved {
  from = google_service_account.tasks
  to   = google_service_account.tasks[0]
}

# Purges had no queue of their own at first.
moved {
  from = google_cloud_tasks_queue.worker
  to   = google_cloud_tasks_queue.worker["tasks"]
}
