mock_provider "google" {}

variables {
  project_id = "affinity-test"
  region     = "europe-west1"
  worker_uri = "https://worker-abc-ew.a.run.app"
}

# Two different accounts, so that the tests notice if they are exchanged.
override_resource {
  target = google_service_account.tasks
  values = {
    name   = "projects/affinity-test/serviceAccounts/call-tasks@affinity-test.iam.gserviceaccount.com"
    email  = "call-tasks@affinity-test.iam.gserviceaccount.com"
    member = "serviceAccount:call-tasks@affinity-test.iam.gserviceaccount.com"
  }
}

override_resource {
  target = google_service_account.scheduler
  values = {
    email  = "call-nightly@affinity-test.iam.gserviceaccount.com"
    member = "serviceAccount:call-nightly@affinity-test.iam.gserviceaccount.com"
  }
}

run "queue" {
  variables {
    enqueuers = { profiles = "serviceAccount:fn-profiles@affinity-test.iam.gserviceaccount.com" }
  }

  assert {
    condition = (
      google_cloud_tasks_queue.worker["tasks"].http_target[0].uri_override[0].host == "worker-abc-ew.a.run.app" &&
      google_cloud_tasks_queue.worker["tasks"].http_target[0].uri_override[0].uri_override_enforce_mode == "ALWAYS" &&
      length(google_cloud_tasks_queue.worker["tasks"].http_target[0].uri_override[0].path_override) == 0
    )
    error_message = "The queue does not send each task to the worker, or changes its path."
  }

  assert {
    condition     = google_cloud_tasks_queue.worker["tasks"].http_target[0].oidc_token[0].service_account_email == "call-tasks@affinity-test.iam.gserviceaccount.com" && google_cloud_tasks_queue.worker["tasks"].http_target[0].oidc_token[0].audience == "https://worker-abc-ew.a.run.app"
    error_message = "Tasks do not carry the token that the worker expects."
  }

  # The worker gives a shard up after 8 attempts and records the failure.
  assert {
    condition     = google_cloud_tasks_queue.worker["tasks"].retry_config[0].max_attempts > 8
    error_message = "Cloud Tasks gives a shard up before the worker does."
  }

  # The seven waits between eight attempts outlast an outage of ten minutes.
  assert {
    condition     = sum([for n in range(7) : min(tonumber(trimsuffix(google_cloud_tasks_queue.worker["tasks"].retry_config[0].min_backoff, "s")) * pow(2, min(n, google_cloud_tasks_queue.worker["tasks"].retry_config[0].max_doublings)), tonumber(trimsuffix(google_cloud_tasks_queue.worker["tasks"].retry_config[0].max_backoff, "s")))]) >= 600
    error_message = "The worker gives a shard up within ten minutes."
  }

  assert {
    condition     = google_cloud_tasks_queue.worker["tasks"].desired_state == "RUNNING"
    error_message = "The queue is paused by default."
  }

  assert {
    condition     = output.queue_host == "worker-abc-ew.a.run.app" && length(output.waiting) == 0
    error_message = "Tasks go to ${output.queue_host}, and these are paused: ${join(", ", output.waiting)}."
  }

  assert {
    condition     = google_cloud_tasks_queue_iam_member.enqueuer["profiles"].role == "roles/cloudtasks.enqueuer" && google_service_account_iam_member.enqueuer["profiles"].role == "roles/iam.serviceAccountUser"
    error_message = "An enqueuer may not enqueue tasks as the account of the queue."
  }

  assert {
    condition     = output.queue == "projects/affinity-test/locations/europe-west1/queues/worker"
    error_message = "The output names another queue: ${output.queue}"
  }
}

# Purges have their own queue, with the same worker, and a share of its instances.
run "purges" {
  variables {
    max_concurrent = 12
    enqueuers      = { profiles = "serviceAccount:fn-profiles@affinity-test.iam.gserviceaccount.com" }
  }

  assert {
    condition = (
      google_cloud_tasks_queue.worker["purges"].http_target[0].uri_override[0].host == google_cloud_tasks_queue.worker["tasks"].http_target[0].uri_override[0].host &&
      google_cloud_tasks_queue.worker["purges"].http_target[0].oidc_token[0].audience == google_cloud_tasks_queue.worker["tasks"].http_target[0].oidc_token[0].audience
    )
    error_message = "Purges do not reach the worker."
  }

  assert {
    condition     = google_cloud_tasks_queue.worker["purges"].rate_limits[0].max_concurrent_dispatches == 2 && google_cloud_tasks_queue.worker["tasks"].rate_limits[0].max_concurrent_dispatches == 6
    error_message = "Purges are other than a quarter of the 8 tasks that refreshes leave of 12."
  }

  assert {
    condition     = sum([for q in google_cloud_tasks_queue.worker : q.rate_limits[0].max_concurrent_dispatches]) == 12 && alltrue([for q in ["refreshes-0", "refreshes-1"] : google_cloud_tasks_queue.worker[q].rate_limits[0].max_concurrent_dispatches == 2])
    error_message = "The queues together dispatch other than the 12 tasks that the worker accepts, or refreshes other than a third."
  }

  assert {
    condition     = alltrue([for q in ["refreshes-0", "refreshes-1"] : google_cloud_tasks_queue.worker[q].rate_limits[0].max_dispatches_per_second == 500 && google_cloud_tasks_queue_iam_member.refresher["${q}/profiles"].name == q])
    error_message = "Refreshes start more slowly than Cloud Tasks permits, or an enqueuer may not enqueue them."
  }

  assert {
    condition     = output.refresh_queues == ["projects/affinity-test/locations/europe-west1/queues/refreshes-0", "projects/affinity-test/locations/europe-west1/queues/refreshes-1"]
    error_message = "The output names other queues: ${jsonencode(output.refresh_queues)}"
  }

  assert {
    condition     = google_cloud_tasks_queue_iam_member.purger["profiles"].name == "purges" && google_cloud_tasks_queue_iam_member.enqueuer["profiles"].name == "worker"
    error_message = "An enqueuer may not enqueue purges, or no other task."
  }

  assert {
    condition     = output.purge_queue == "projects/affinity-test/locations/europe-west1/queues/purges"
    error_message = "The output names another queue: ${output.purge_queue}"
  }
}

run "dedicated" {
  variables {
    dedicated = { acme = {
      worker_uri     = "https://worker-acme-abc-ew.a.run.app"
      max_concurrent = 6
      enqueuers      = { profiles-acme = "serviceAccount:fn-profiles-acme@affinity-test.iam.gserviceaccount.com" }
    } }
  }

  assert {
    condition = alltrue([for key, name in { tasks-acme = "worker-acme", purges-acme = "purges-acme", refreshes-0-acme = "refreshes-0-acme", refreshes-1-acme = "refreshes-1-acme" } :
      google_cloud_tasks_queue.worker[key].name == name &&
      google_cloud_tasks_queue.worker[key].http_target[0].uri_override[0].host == "worker-acme-abc-ew.a.run.app" &&
      google_cloud_tasks_queue.worker[key].http_target[0].oidc_token[0].audience == "https://worker-acme-abc-ew.a.run.app"
    ])
    error_message = "The customer's tasks do not reach their worker."
  }

  assert {
    condition     = google_cloud_tasks_queue.worker["tasks-acme"].rate_limits[0].max_concurrent_dispatches == 3 && google_cloud_tasks_queue.worker["purges-acme"].rate_limits[0].max_concurrent_dispatches == 1 && google_cloud_tasks_queue.worker["refreshes-1-acme"].rate_limits[0].max_concurrent_dispatches == 1 && google_cloud_tasks_queue.worker["tasks"].http_target[0].uri_override[0].host == "worker-abc-ew.a.run.app"
    error_message = "The customer's queues dispatch other than the 6 tasks that their worker accepts, or the common queue reaches it."
  }

  assert {
    condition     = keys(google_cloud_tasks_queue_iam_member.dedicated_enqueuer) == ["purges-acme/profiles-acme", "refreshes-0-acme/profiles-acme", "refreshes-1-acme/profiles-acme", "tasks-acme/profiles-acme"] && length(google_cloud_tasks_queue_iam_member.enqueuer) == 0
    error_message = "Others may enqueue the customer's tasks."
  }

  assert {
    condition     = output.dedicated_queues == ["purges-acme", "refreshes-0-acme", "refreshes-1-acme", "worker-acme"]
    error_message = "The output names other queues: ${join(", ", output.dedicated_queues)}"
  }
}

# Only what runs empty may be deleted.
run "protected" {
  variables {
    dedicated = {
      acme = { worker_uri = "https://worker-acme-abc-ew.a.run.app", max_concurrent = 20, draining = true }
      big  = { worker_uri = "https://worker-big-abc-ew.a.run.app", max_concurrent = 20 }
    }
  }

  assert {
    condition     = alltrue([for key, q in google_cloud_tasks_queue.worker : q.deletion_policy == (endswith(key, "-acme") ? "DELETE" : "PREVENT")])
    error_message = "Queues in which tasks wait may be deleted, or those of a customer who drains may not: ${jsonencode({ for key, q in google_cloud_tasks_queue.worker : key => q.deletion_policy })}"
  }
}

run "unprotected" {
  command = plan

  variables {
    deletion_protection = false
  }

  assert {
    condition     = alltrue([for q in google_cloud_tasks_queue.worker : q.deletion_policy == "DELETE"])
    error_message = "Before a teardown queues are still protected."
  }
}

run "one_task_at_once" {
  command = plan

  variables {
    max_concurrent = 1
  }

  assert {
    condition     = alltrue([for q in google_cloud_tasks_queue.worker : q.rate_limits[0].max_concurrent_dispatches == 1])
    error_message = "A queue dispatches nothing."
  }
}

run "one_queue_for_both" {
  command = plan

  variables {
    purge_queue = "worker"
  }

  expect_failures = [var.purge_queue]
}

run "refreshes_among_tasks" {
  command = plan

  variables {
    refresh_queues = ["worker"]
  }

  expect_failures = [var.refresh_queues]
}

run "common_round" {
  assert {
    condition     = keys(google_cloud_scheduler_job.nightly) == ["nightly"] && google_cloud_scheduler_job.nightly["nightly"].schedule == "0 3 * * *"
    error_message = "There is not exactly one round, at three."
  }

  assert {
    condition     = jsondecode(base64decode(google_cloud_scheduler_job.nightly["nightly"].http_target[0].body)) == { spread = "1h", except = [] }
    error_message = "The body of the round is wrong: ${base64decode(google_cloud_scheduler_job.nightly["nightly"].http_target[0].body)}"
  }

  assert {
    condition = (
      google_cloud_scheduler_job.nightly["nightly"].http_target[0].uri == "https://worker-abc-ew.a.run.app/nightly" &&
      google_cloud_scheduler_job.nightly["nightly"].http_target[0].oidc_token[0].audience == "https://worker-abc-ew.a.run.app" &&
      google_cloud_scheduler_job.nightly["nightly"].http_target[0].oidc_token[0].service_account_email == "call-nightly@affinity-test.iam.gserviceaccount.com"
    )
    error_message = "The round does not reach the worker."
  }

  assert {
    condition     = google_cloud_scheduler_job.nightly["nightly"].attempt_deadline == "180s" && google_cloud_scheduler_job.nightly["nightly"].retry_config[0].retry_count == 5
    error_message = "Scheduler waits for the round longer than it takes to enqueue its tasks, or does not ask again."
  }
}

run "own_rounds" {
  variables {
    schedules = {
      bistro = { app_id = "bistro", schedule = "30 1 * * 1-5", time_zone = "Europe/Berlin" }
      acme   = { app_id = "acme_shop", schedule = "0 4 * * *" }
    }
  }

  assert {
    condition     = jsondecode(base64decode(google_cloud_scheduler_job.nightly["nightly"].http_target[0].body)).except == ["acme_shop", "bistro"]
    error_message = "The common round includes a customer who has their own."
  }

  assert {
    condition     = jsondecode(base64decode(google_cloud_scheduler_job.nightly["nightly-acme"].http_target[0].body)) == { app = "acme_shop" }
    error_message = "The customer's round is not for their app only."
  }

  assert {
    condition     = google_cloud_scheduler_job.nightly["nightly-bistro"].time_zone == "Europe/Berlin" && google_cloud_scheduler_job.nightly["nightly-bistro"].name == "affinity-nightly-bistro"
    error_message = "The customer's round has another time zone or name."
  }
}

run "full_rounds" {
  variables {
    full_schedules = { acme = { app_id = "acme_shop", schedule = "0 4 * * sun" } }
  }

  assert {
    condition     = jsondecode(base64decode(google_cloud_scheduler_job.nightly["full-acme"].http_target[0].body)) == { app = "acme_shop", full = true }
    error_message = "The full round is not for every profile of the customer's app."
  }

  assert {
    condition     = jsondecode(base64decode(google_cloud_scheduler_job.nightly["nightly"].http_target[0].body)) == { spread = "1h", except = [] }
    error_message = "A customer with a full round is not in the common one any more."
  }
}

run "paused" {
  variables {
    paused = true
  }

  assert {
    condition     = alltrue([for q in google_cloud_tasks_queue.worker : q.desired_state == "PAUSED"]) && alltrue([for j in google_cloud_scheduler_job.nightly : j.paused])
    error_message = "The queue or a round is not paused."
  }

  assert {
    condition     = output.waiting == tolist(["affinity-nightly", "purges", "refreshes-0", "refreshes-1", "worker"])
    error_message = "The output lists other paused resources: ${join(", ", output.waiting)}"
  }
}

run "too_few_attempts" {
  command = plan

  variables {
    max_attempts = 8
  }

  expect_failures = [var.max_attempts]
}

run "schedule_of_six_fields" {
  command = plan

  variables {
    schedules = { acme = { app_id = "acme", schedule = "0 0 4 * * *" } }
  }

  expect_failures = [var.schedules]
}

run "spread_without_a_unit" {
  command = plan

  variables {
    nightly = { spread = "60" }
  }

  expect_failures = [var.nightly]
}

run "spread_over_a_day" {
  command = plan

  variables {
    nightly = { spread = "25h" }
  }

  expect_failures = [var.nightly]
}

run "spread_of_a_day" {
  command = plan

  variables {
    nightly = { spread = "23h59m60s" }
  }
}

run "queue_with_a_slash" {
  command = plan

  variables {
    queue = "projects/affinity-test"
  }

  expect_failures = [var.queue]
}

run "zero_concurrency" {
  command = plan

  variables {
    max_concurrent = 0
  }

  expect_failures = [var.max_concurrent]
}

run "rate_too_high" {
  command = plan

  variables {
    max_per_second = 501
  }

  expect_failures = [var.max_per_second]
}
