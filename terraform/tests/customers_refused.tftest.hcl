# Invalid customers, which the plan refuses. The messages name them.

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

run "invalid_host" {
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

run "default_host_again" {
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

run "full_schedule_in_words" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme", full_schedule = "every sunday" } }
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

run "minute_out_of_range" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme", schedule = "60 3 * * *" } }
  }

  expect_failures = [var.customers]
}

run "hour_out_of_range" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme", schedule = "0 24 * * *" } }
  }

  expect_failures = [var.customers]
}

run "month_out_of_range" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme", schedule = "0 3 * 13 *" } }
  }

  expect_failures = [var.customers]
}

run "step_of_zero" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme", schedule = "*/0 3 * * *" } }
  }

  expect_failures = [var.customers]
}

run "empty_schedule" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme", schedule = "" } }
  }

  expect_failures = [var.customers]
}

run "invalid_time_zone" {
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

run "rate_of_zero" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme", rate_limit = 0 } }
  }

  expect_failures = [var.customers]
}

run "negative_instances" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme", dedicated = true, min_instances = -1 } }
  }

  expect_failures = [var.customers]
}

run "min_above_max_instances" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme", dedicated = true, min_instances = 5, max_instances = 2 } }
  }

  expect_failures = [var.customers]
}

run "too_many_instances" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme", dedicated = true, max_instances = 1001 } }
  }

  expect_failures = [var.customers]
}

run "name_of_the_engine" {
  command = plan

  variables {
    customers = { slow = { host = "a.example.com", app_id = "a" } }
  }

  expect_failures = [var.customers]
}

run "draining_without_dedicated" {
  command = plan

  variables {
    customers = { acme = { host = "a.example.com", app_id = "a", draining = true } }
  }

  expect_failures = [var.customers]
}
