# The functions at their maximum must fit the Cloud Run quota of the project.

mock_provider "google" {
  source = "./tests/mocks"
}

variables {
  project_id = "affinity-test"
  source_dir = null
}

run "default_sizes_fit_a_new_project" {
  command = plan

  assert {
    condition     = var.run_quota == { cpu = 20, memory_gib = 40 } && local.run_total.cpu == sum([for s in values(local.size) : s.max_instances * tonumber(s.cpu)])
    error_message = "The functions need ${local.run_total.cpu} vCPU of ${var.run_quota.cpu}."
  }

  assert {
    condition     = local.run_maximum["worker"].memory_gib == 2 * local.size["worker"].max_instances && local.run_maximum["ingest"].memory_gib == local.size["ingest"].max_instances / 2
    error_message = "Memory is counted wrongly: ${jsonencode(local.run_maximum)}"
  }
}

run "cpu_over_quota" {
  command = plan

  variables {
    functions = { ingest = { max_instances = 50 } }
  }

  expect_failures = [var.run_quota]
}

run "memory_over_quota" {
  command = plan

  variables {
    functions = { worker = { memory = "32Gi" } }
  }

  expect_failures = [var.run_quota]
}

run "dedicated_customer_over_quota" {
  command = plan

  variables {
    customers = { acme = { host = "acme.example.com", app_id = "acme", dedicated = true, max_instances = 40 } }
  }

  expect_failures = [var.run_quota]
}

run "granted_quota" {
  command = plan

  variables {
    run_quota = { cpu = 200, memory_gib = 250 }
    functions = { ingest = { max_instances = 50 }, worker = { memory = "32Gi" } }
    customers = { acme = { host = "acme.example.com", app_id = "acme", dedicated = true, max_instances = 40 } }
  }

  assert {
    condition     = local.run_total.cpu >= 50 + 2 * 40 && local.run_total.memory_gib >= 64
    error_message = "The total leaves out a function: ${jsonencode(local.run_total)}"
  }
}
