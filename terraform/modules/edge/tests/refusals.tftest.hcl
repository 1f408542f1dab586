# Invalid input, which the validations in variables.tf refuse before anything is
# planned. The messages name the customer.

mock_provider "google" {}

variables {
  region       = "europe-west1"
  default_host = "api.example.com"
  functions = {
    ingest     = "affinity-ingest"
    imports    = "affinity-imports"
    profiles   = "affinity-profiles"
    rank       = "affinity-rank"
    strategies = "affinity-strategies"
    catalog    = "affinity-catalog"
    admin      = "affinity-admin"
    segments   = "affinity-segments"
    docs       = "affinity-docs"
  }
}

run "customer_without_host" {
  command = plan
  variables {
    customers = { acme = { app_id = "ACME" } }
  }
  expect_failures = [var.customers]
}

run "same_host_twice" {
  command = plan
  variables {
    customers = {
      acme   = { host = "shop.example.com", app_id = "ACME" }
      globex = { host = "shop.example.com", app_id = "GLOBEX" }
    }
  }
  expect_failures = [var.customers]
}

run "customer_on_the_default_host" {
  command = plan
  variables {
    customers = { acme = { host = "api.example.com", app_id = "ACME" } }
  }
  expect_failures = [var.customers]
}

run "host_with_a_scheme" {
  command = plan
  variables {
    customers = { acme = { host = "https://acme.example.com", app_id = "ACME" } }
  }
  expect_failures = [var.customers]
}

run "host_with_a_quote" {
  command = plan
  variables {
    customers = { acme = { host = "a.example.com' || true || '", app_id = "ACME" } }
  }
  expect_failures = [var.customers]
}

run "host_in_upper_case" {
  command = plan
  variables {
    customers = { acme = { host = "Acme.example.com", app_id = "ACME" } }
  }
  expect_failures = [var.customers]
}

run "rate_of_zero" {
  command = plan
  variables {
    customers = { acme = { host = "acme.example.com", app_id = "ACME", rate_limit = 0 } }
  }
  expect_failures = [var.customers]
}

run "fractional_rate" {
  command = plan
  variables {
    customers = { acme = { host = "acme.example.com", app_id = "ACME", rate_limit = 1.5 } }
  }
  expect_failures = [var.customers]
}

run "rate_too_high" {
  command = plan
  variables {
    customers = { acme = { host = "acme.example.com", app_id = "ACME", rate_limit = 1000001 } }
  }
  expect_failures = [var.customers]
}

run "invalid_customer_name" {
  command = plan
  variables {
    customers = { "Acme Inc" = { host = "acme.example.com", app_id = "ACME" } }
  }
  expect_failures = [var.customers]
}

run "dedicated_without_services" {
  command = plan
  variables {
    customers = { acme = { host = "acme.example.com", app_id = "ACME", dedicated = true } }
  }
  expect_failures = [var.customers]
}

run "services_without_dedicated" {
  command = plan
  variables {
    customers = { acme = { host = "acme.example.com", app_id = "ACME", services = { ingest = "a", profiles = "b" } } }
  }
  expect_failures = [var.customers]
}

run "private_function" {
  command = plan
  variables {
    functions = {
      ingest     = "affinity-ingest"
      imports    = "affinity-imports"
      profiles   = "affinity-profiles"
      rank       = "affinity-rank"
      strategies = "affinity-strategies"
      catalog    = "affinity-catalog"
      admin      = "affinity-admin"
      segments   = "affinity-segments"
      docs       = "affinity-docs"
      worker     = "affinity-worker"
    }
  }
  expect_failures = [var.functions]
}

run "function_without_service" {
  command = plan
  variables {
    functions = { ingest = "affinity-ingest" }
  }
  expect_failures = [var.functions]
}

run "unknown_fallback" {
  command = plan
  variables {
    fallback_function = "worker"
  }
  expect_failures = [var.fallback_function]
}

run "path_with_a_wildcard" {
  command = plan
  variables {
    functions = { ingest = "affinity-ingest" }
    routes    = { ingest = ["/1/*"] }
  }
  expect_failures = [var.routes]
}

run "same_path_twice" {
  command = plan
  variables {
    functions = { ingest = "affinity-ingest", imports = "affinity-imports" }
    routes    = { ingest = ["/1/events"], imports = ["/1/events"] }
  }
  expect_failures = [var.routes]
}

run "no_hosts" {
  command = plan
  variables {
    default_host = null
  }
  expect_failures = [var.customers]
}

run "default_host_as_ip_address" {
  command = plan
  variables {
    default_host = "203.0.113.7"
  }
  expect_failures = [var.default_host]
}

run "default_rate_of_zero" {
  command = plan
  variables {
    default_rate_limit = 0
  }
  expect_failures = [var.default_rate_limit]
}

run "prefix_too_long" {
  command = plan
  variables {
    name_prefix = "a-prefix-that-is-too-long"
  }
  expect_failures = [var.name_prefix]
}

run "sample_rate_above_one" {
  command = plan
  variables {
    log_sample_rate = 2
  }
  expect_failures = [var.log_sample_rate]
}
