# What is refused before anything is made, but for customers.

mock_provider "google" {
  source = "./tests/mocks"
}

variables {
  project_id = "affinity-test"
  source_dir = null
}

run "default_host_that_is_none" {
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

run "cluster_in_no_zone" {
  command = plan

  variables {
    clusters = { cluster-1 = { zone = "europe-west99-b" } }
  }

  expect_failures = [var.clusters]
}

run "audit_that_is_cut_off" {
  command = plan

  variables {
    functions = { worker = { timeout_seconds = 540 } }
  }

  expect_failures = [var.functions]
}

run "round_longer_than_a_day" {
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

run "common_round_in_no_time_zone" {
  command = plan

  variables {
    nightly = { time_zone = "Mars Base" }
  }

  expect_failures = [var.nightly]
}

run "primary_cluster_that_is_none" {
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

run "retention_below_nothing" {
  command = plan

  variables {
    longest_retention_days = -1
  }

  expect_failures = [var.longest_retention_days]
}

run "replay_beyond_a_month" {
  command = plan

  variables {
    replay_days = 32
  }

  expect_failures = [var.replay_days]
}

run "size_of_no_function" {
  command = plan

  variables {
    functions = { ingestion = { min_instances = 1 } }
  }

  expect_failures = [var.functions]
}

run "longer_than_anyone_waits" {
  command = plan

  variables {
    functions = { worker = { timeout_seconds = 3600 } }
  }

  expect_failures = [var.functions]
}

run "common_round_without_a_cron_line" {
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

run "budget_of_nothing" {
  command = plan

  variables {
    monthly_budget = 0
  }

  expect_failures = [var.monthly_budget]
}
