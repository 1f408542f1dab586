# What is refused before anything is made. The messages name the customers.

mock_provider "google" {
  source = "./tests/mocks"
}

variables {
  project_id = "affinity-test"
  source_dir = null
}

run "without_a_host" {
  command = plan

  variables {
    customers = { acme = { app_id = "acme" } }
  }

  expect_failures = [var.customers]
}

run "host_that_is_none" {
  command = plan

  variables {
    customers = { acme = { host = "Acme Shop", app_id = "acme" } }
  }

  expect_failures = [var.customers]
}

run "host_with_a_path" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com/1", app_id = "acme" } }
  }

  expect_failures = [var.customers]
}

run "same_host" {
  command = plan

  variables {
    customers = {
      acme   = { host = "shop.example.com", app_id = "acme" }
      bistro = { host = "shop.example.com", app_id = "bistro" }
    }
  }

  expect_failures = [var.customers]
}

run "host_of_all" {
  command = plan

  variables {
    default_host = "api.example.com"
    customers    = { acme = { host = "api.example.com", app_id = "acme" } }
  }

  expect_failures = [var.customers]
}

run "without_an_app" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com" } }
  }

  expect_failures = [var.customers]
}

run "same_app" {
  command = plan

  variables {
    customers = {
      acme   = { host = "acme.example.com", app_id = "shop" }
      bistro = { host = "bistro.example.com", app_id = "shop" }
    }
  }

  expect_failures = [var.customers]
}

run "app_with_a_comma" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme,shop" } }
  }

  expect_failures = [var.customers]
}

run "app_too_long" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" } }
  }

  expect_failures = [var.customers]
}

run "schedule_in_words" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme", schedule = "every day at 3" } }
  }

  expect_failures = [var.customers]
}

run "schedule_of_four_fields" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme", schedule = "0 3 * *" } }
  }

  expect_failures = [var.customers]
}

run "schedule_of_six_fields" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme", schedule = "0 0 3 * * *" } }
  }

  expect_failures = [var.customers]
}

run "schedule_beyond_the_hour" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme", schedule = "60 3 * * *" } }
  }

  expect_failures = [var.customers]
}

run "schedule_beyond_the_day" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme", schedule = "0 24 * * *" } }
  }

  expect_failures = [var.customers]
}

run "schedule_of_no_month" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme", schedule = "0 3 * 13 *" } }
  }

  expect_failures = [var.customers]
}

run "schedule_of_no_step" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme", schedule = "*/0 3 * * *" } }
  }

  expect_failures = [var.customers]
}

run "schedule_of_nothing" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme", schedule = "" } }
  }

  expect_failures = [var.customers]
}

run "no_time_zone" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme", time_zone = "Mars Base" } }
  }

  expect_failures = [var.customers]
}

run "name_with_capitals" {
  command = plan

  variables {
    customers = { Acme = { host = "acme.example.com", app_id = "acme" } }
  }

  expect_failures = [var.customers]
}

run "name_too_long" {
  command = plan

  variables {
    customers = { a-customer-of-ours = { host = "acme.example.com", app_id = "acme" } }
  }

  expect_failures = [var.customers]
}

run "rate_of_nothing" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme", rate_limit = 0 } }
  }

  expect_failures = [var.customers]
}

run "fewer_instances_than_none" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme", dedicated = true, min_instances = -1 } }
  }

  expect_failures = [var.customers]
}

run "most_below_least" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme", dedicated = true, min_instances = 5, max_instances = 2 } }
  }

  expect_failures = [var.customers]
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

