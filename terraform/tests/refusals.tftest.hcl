# Invalid variables, which the plan refuses. customers_refused.tftest.hcl has those of
# customers.

mock_provider "google" {
  source = "./tests/mocks"
}

variables {
  project_id = "affinity-test"
  source_dir = null
}

run "default_host_with_a_scheme" {
  command = plan

  variables {
    default_host = "https://api.example.com"
  }

  expect_failures = [var.default_host]
}

run "unknown_region" {
  command = plan

  variables {
    region = "europe-west99"
  }

  expect_failures = [var.region]
}

run "region_that_is_a_zone" {
  command = plan

  variables {
    region = "europe-west1-b"
  }

  expect_failures = [var.region]
}

run "cluster_in_unknown_zone" {
  command = plan

  variables {
    clusters = { cluster-1 = { zone = "europe-west99-b" } }
  }

  expect_failures = [var.clusters]
}

run "worker_timeout_too_short" {
  command = plan

  variables {
    functions = { worker = { timeout_seconds = 540 } }
  }

  expect_failures = [var.functions]
}

run "spread_over_a_day" {
  command = plan

  variables {
    nightly = { spread = "23h60m1s" }
  }

  expect_failures = [var.nightly]
}

run "spread_without_a_unit" {
  command = plan

  variables {
    nightly = { spread = "60" }
  }

  expect_failures = [var.nightly]
}

run "nightly_in_unknown_time_zone" {
  command = plan

  variables {
    nightly = { time_zone = "Mars Base" }
  }

  expect_failures = [var.nightly]
}

run "unknown_primary_cluster" {
  command = plan

  variables {
    primary_cluster = "cluster-2"
  }

  expect_failures = [var.primary_cluster]
}

run "project_number_for_id" {
  command = plan

  variables {
    project_id = "123456789012"
  }

  expect_failures = [var.project_id]
}

run "generation_that_is_no_ending" {
  command = plan

  variables {
    generation = "second-one"
  }

  expect_failures = [var.generation]
}

run "negative_retention" {
  command = plan

  variables {
    longest_retention_days = -1
  }

  expect_failures = [var.longest_retention_days]
}

run "retention_of_production_not_set" {
  command = plan

  variables {
    environment = "prod"
  }

  expect_failures = [var.longest_retention_days]
}

run "replay_days_too_large" {
  command = plan

  variables {
    replay_days = 32
  }

  expect_failures = [var.replay_days]
}

run "archive_days_too_large" {
  command = plan

  variables {
    archive_days = 31
  }

  expect_failures = [var.archive_days]
}

run "keys_in_the_database_of_the_configuration" {
  command = plan

  variables {
    firestore_keys_database = "affinity"
  }

  expect_failures = [var.firestore_keys_database]
}

run "size_of_unknown_function" {
  command = plan

  variables {
    functions = { ingestion = { min_instances = 1 } }
  }

  expect_failures = [var.functions]
}

run "unknown_public_access" {
  command = plan

  variables {
    public_access = "nobody"
  }

  expect_failures = [var.public_access]
}

run "traffic_of_an_unknown_service" {
  command = plan

  variables {
    traffic = { ingest-acme = { latest = 5, revision = "ingest-acme-00007-abc" } }
  }

  expect_failures = [var.traffic]
}

run "more_than_all_requests_of_the_balancer_logged" {
  command = plan

  variables {
    balancer_log_sample = 10
  }

  expect_failures = [var.balancer_log_sample]
}

run "timeout_too_long" {
  command = plan

  variables {
    functions = { worker = { timeout_seconds = 3600 } }
  }

  expect_failures = [var.functions]
}

run "nightly_without_a_cron_line" {
  command = plan

  variables {
    nightly = { schedule = "at night" }
  }

  expect_failures = [var.nightly]
}

run "environment_in_capitals" {
  command = plan

  variables {
    environment = "Production"
  }

  expect_failures = [var.environment]
}

run "billing_account_by_name" {
  command = plan

  variables {
    billing_account = "My Billing Account"
  }

  expect_failures = [var.billing_account]
}

run "budget_of_zero" {
  command = plan

  variables {
    monthly_budget = 0
  }

  expect_failures = [var.monthly_budget]
}

run "log_samples_over_one" {
  command = plan

  variables {
    request_log_sample = 10
    message_log_sample = 1.5
  }

  expect_failures = [var.request_log_sample, var.message_log_sample]
}

run "pack_window_too_long" {
  command = plan

  variables {
    pack_window_ms = 501
  }

  expect_failures = [var.pack_window_ms]
}

run "log_samples_below_zero" {
  command = plan

  variables {
    request_log_sample = -0.1
    message_log_sample = -1
  }

  expect_failures = [var.request_log_sample, var.message_log_sample]
}
