# The console: a function and a host of its own, or nothing at all.

mock_provider "google" {
  source = "./tests/mocks"
}

variables {
  project_id   = "affinity-test"
  source_dir   = null
  default_host = "api.example.com"
  console_host = "console.example.com"
  functions    = { profiles = { max_instances = 2 } } # the quota of a new project
  customers    = { acme = { host = "acme.example.com", app_id = "acme_shop" } }
}

run "deployed" {
  assert {
    condition = (
      module.function["console"].ingress == "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER" && module.function["console"].invokers == tolist(["everyone"]) &&
      local.size["console"].min_instances == 0 && output.console == "https://console.example.com"
    )
    error_message = "The console cannot be reached through the load balancer, or an instance stays warm."
  }

  assert {
    condition     = sort(keys(module.function["console"].environment)) == sort(concat(local.functions["console"].env, ["FUNCTION_TARGET", "GOMEMLIMIT"]))
    error_message = "The console does not get exactly the variables that it reads."
  }

  assert {
    condition     = module.function["console"].environment.CONSOLE_API_URL == "https://api.example.com" && module.function["console"].environment.CUSTOMER_HOSTS == jsonencode({ "acme.example.com" = "acme_shop" })
    error_message = "Pages of the console show another address of the API."
  }

  # The secret is no plain variable, and no other function's account may read it.
  assert {
    condition     = { for key, f in module.function : key => f.secrets if length(f.secrets) > 0 } == { console = { CONSOLE_SECRET = "affinity-console" } } && length(google_project_service.secrets) == 1
    error_message = "The secret of sessions goes to others than the console: ${jsonencode({ for key, f in module.function : key => f.secrets })}"
  }

  # The edge's tests hold that only the console's host leads to the console.
  assert {
    condition     = contains(module.edge[0].groups["europe-west1"], "console") && toset(keys(output.dns_records)) == toset(["api.example.com", "acme.example.com", "console.example.com"])
    error_message = "The load balancer does not have the console, or its host has no DNS records."
  }

  assert {
    condition     = module.monitoring.checked_hosts == toset(["api.example.com", "acme.example.com", "console.example.com"])
    error_message = "Google does not call every host: ${join(", ", module.monitoring.checked_hosts)}"
  }

  assert {
    condition     = strcontains(output.next_steps, "https://console.example.com") && local.run_total.cpu <= 20
    error_message = "The next steps do not name the console, or it does not fit the quota."
  }
}

# It makes the requests of the other public functions in its process, and may do what they
# may together: nothing is missing, and nothing is too much.
run "access" {
  command = plan

  assert {
    condition     = toset(local.access["console"].writes) == toset(flatten([for name, a in local.access : a.writes if !contains(["console", "process", "worker"], name)]))
    error_message = "The tables that the console writes are not those that the public functions write."
  }

  assert {
    condition     = setunion(local.access["console"].writes, local.access["console"].reads) == toset(flatten([for name, a in local.access : concat(a.reads, a.writes) if !contains(["console", "process", "worker"], name)])) && length(setintersection(local.access["console"].writes, local.access["console"].reads)) == 0
    error_message = "The tables that the console reads are not those that the public functions read."
  }

  assert {
    condition     = contains(keys(local.users), "console") && contains(keys(local.publishers), "console") && contains(keys(local.enqueuers), "console") && !contains(keys(local.buriers), "console") && !contains(keys(local.viewers), "console") && contains(keys(local.key_viewers), "console") && !contains(keys(local.key_users), "console")
    error_message = "The console cannot change the configuration, publish or enqueue, or it can bury messages."
  }
}

run "no_parents" {
  command = plan

  variables {
    secured_keys = true
  }

  assert {
    condition     = toset(keys(google_kms_crypto_key_iam_member.decrypter)) == toset(["ingest", "profiles", "rank"])
    error_message = "The console decrypts parents of secured keys, which its sessions refuse."
  }
}

run "with_headers_of_telemetry" {
  command = plan

  variables {
    console_secret = "sessions"
    telemetry = {
      variables      = { OTEL_EXPORTER_OTLP_ENDPOINT = "https://otlp.example.com" }
      headers_secret = "otlp-headers"
    }
  }

  assert {
    condition     = module.function["console"].secrets == { CONSOLE_SECRET = "sessions", OTEL_EXPORTER_OTLP_HEADERS = "otlp-headers" } && keys(module.function["ingest"].secrets) == ["OTEL_EXPORTER_OTLP_HEADERS"]
    error_message = "A function has other secrets: ${jsonencode(module.function["console"].secrets)}"
  }
}

run "in_serving_regions" {
  command = plan

  variables {
    serving_regions = ["us-central1"]
  }

  assert {
    condition     = module.serving["console/us-central1"].secrets == module.function["console"].secrets && contains(module.edge[0].groups["us-central1"], "console")
    error_message = "The console of a serving region cannot read its sessions."
  }
}

run "not_deployed" {
  variables {
    console_host = null
  }

  assert {
    condition     = !contains(keys(module.function), "console") && output.console == null && !contains(module.edge[0].groups["europe-west1"], "console") && length(google_project_service.secrets) == 0 && length([for key in keys(local.table_grants) : key if startswith(key, "console/")]) == 0
    error_message = "Something of the console is deployed without a host."
  }
}

run "over_the_quota_of_a_new_project" {
  command = plan

  variables {
    functions = {}
  }

  expect_failures = [var.run_quota]
}

run "on_the_default_host" {
  command = plan

  variables {
    console_host = "api.example.com"
  }

  expect_failures = [var.console_host]
}

run "on_a_customers_host" {
  command = plan

  variables {
    console_host = "acme.example.com"
  }

  expect_failures = [var.console_host]
}

run "with_a_scheme" {
  command = plan

  variables {
    console_host = "https://console.example.com"
  }

  expect_failures = [var.console_host]
}

run "without_an_api" {
  command = plan

  variables {
    default_host = null
    customers    = {}
  }

  expect_failures = [var.console_host]
}

# Functions that may look at users find where they live, in every region, and no others do.
run "locations" {
  command = plan

  variables {
    location_secret = "locations"
    serving_regions = ["us-central1"]
    run_quota       = { cpu = 200, memory_gib = 200 }
    data_regions    = { us = { region = "us-central1" } }
  }

  assert {
    condition     = toset([for key, f in module.function : key if contains(keys(f.secrets), "LOCATION_SECRET")]) == toset([for key, d in local.deployed : key if contains(keys(local.table_grants), "${key}/users")])
    error_message = "The secret of locations goes to others than the functions that may look at users: ${jsonencode({ for key, f in module.function : key => f.secrets })}"
  }

  assert {
    condition     = module.function["console"].secrets == { CONSOLE_SECRET = "affinity-console", LOCATION_SECRET = "locations" } && module.serving["ingest/us-central1"].secrets == { LOCATION_SECRET = "locations" } && module.processing["process/us"].secrets == { LOCATION_SECRET = "locations" }
    error_message = "A function of another region does not get the secrets of the one with its name."
  }

  assert {
    condition     = length(setintersection(["catalog", "docs"], [for key, f in module.function : key if length(f.secrets) > 0])) == 0 && length(google_project_service.secrets) == 1
    error_message = "catalog or docs gets a secret, or Secret Manager is not switched on."
  }
}

run "the_secret_of_locations_itself" {
  command = plan

  variables {
    location_secret = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA="
  }

  expect_failures = [var.location_secret]
}

run "the_secret_itself" {
  command = plan

  variables {
    console_secret = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA="
  }

  expect_failures = [var.console_secret]
}
